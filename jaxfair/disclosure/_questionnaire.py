"""A model that asks: everything needed to question one person, as one file."""

import dataclasses
import json
import pathlib
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxfair import _schema, checks
from jaxfair.data._preparing import Prepared
from jaxfair.data._scaling import Scaler
from jaxfair.disclosure._gaussian import Gaussian, fit_gaussian
from jaxfair.disclosure._network import Network, as_network
from jaxfair.disclosure._questions import Questions, questions
from jaxfair.types import Params

FILE = "questionnaire.json"


@dataclasses.dataclass(frozen=True, eq=False)
class Questionnaire:
  """A trained model, the law of its features, and its questions in words.

  Attributes:
    title: what is decided.
    class_names: the decisions.
    feature_names: [d] as `Dataset.feature_names`.
    columns: [d] as `Dataset.columns`.
    sensitive: columns that are asked for only if needed.
    network: the model.
    gaussian: law of the scaled features.
    center: [d] of the scaler that takes answers to [-1, 1].
    factor: [d] of the same.

  Privacy:
    Holds the mean and the covariance of the training data. Where that is
    private, make the Gaussian with `fit_private_gaussian`.
  """

  title: str
  class_names: tuple[str, ...]
  feature_names: tuple[str, ...]
  columns: tuple[str, ...]
  sensitive: tuple[str, ...]
  network: Network
  gaussian: Gaussian
  center: np.ndarray
  factor: np.ndarray

  @classmethod
  def of(cls, prepared: Prepared, params: Params, sensitive: tuple[str, ...]) -> "Questionnaire":
    """For a model that was trained on the first part.

    Args:
      prepared: people scaled to [-1, 1]; the law is that of the first part.
      params: of a linear model or a ReLU network.
      sensitive: columns that are asked for only if needed.
    """
    people = prepared.dataset
    return cls(
      title=people.source.title,
      class_names=people.class_names,
      feature_names=people.feature_names,
      columns=people.columns,
      sensitive=sensitive,
      network=as_network(params),
      gaussian=fit_gaussian(prepared.train.x),
      center=prepared.scaler.center,
      factor=prepared.scaler.factor,
    )

  @property
  def scaler(self) -> Scaler:
    """Takes answers to [-1, 1]."""
    return Scaler(self.center, self.factor, self.center, 1.0)

  @property
  def asked(self) -> Questions:
    """The sensitive columns, with the answers that the scaler lets through."""
    _, made = questions(self.feature_names, self.columns, self.sensitive)
    constant = np.asarray(self.factor) == 0
    return made._replace(values=np.where(constant, 0.0, made.values))

  def words(self, column: str) -> list[str]:
    """The possible answers of a column of words; empty for a number."""
    rows = self.rows(column)
    if len(rows) == 1 and self.feature_names[rows[0]] == column:
      return []
    return [self.feature_names[row].partition("=")[2] for row in rows]

  def span(self, column: str) -> tuple[float, float]:
    """The range of a number that the model tells apart."""
    row = self.rows(column)[0]
    if self.factor[row] == 0:
      return float(self.center[row]), float(self.center[row])
    half = 1 / float(self.factor[row])
    return float(self.center[row]) - half, float(self.center[row]) + half

  def rows(self, column: str) -> list[int]:
    """Where a column's features are."""
    return [i for i, name in enumerate(self.columns) if name == column]

  def encoded(self, column: str, answer: str) -> dict[int, float]:
    """Feature -> scaled value, for an answer in words or figures."""
    words = self.words(column)
    if words:
      checks.one_of(column, answer, words)
      raw = [float(word == answer) for word in words]
    else:
      checks.number(column, answer)
      raw = [float(answer)]
    rows = self.rows(column)
    scaled = (np.asarray(raw) - self.center[rows]) * self.factor[rows]
    clipped = np.clip(scaled, -1.0, 1.0)
    return dict(zip(rows, clipped.tolist(), strict=True))

  def save(self, path: pathlib.Path) -> None:
    """Writes the file."""
    path.write_text(json.dumps(self.plain()), encoding="utf-8")

  def plain(self) -> dict[str, Any]:
    """The questionnaire as JSON values."""
    return {
      "title": self.title,
      "class_names": self.class_names,
      "feature_names": self.feature_names,
      "columns": self.columns,
      "sensitive": self.sensitive,
      "layers": [[_plain(w), _plain(b)] for w, b in self.network.layers],
      "mean": _plain(self.gaussian.mean),
      "covariance": _plain(self.gaussian.covariance),
      "center": _plain(self.center),
      "factor": _plain(self.factor),
    }

  @classmethod
  def read(cls, path: pathlib.Path) -> "Questionnaire":
    """The questionnaire back from its file.

    Raises:
      ArgumentError: if the file is not a questionnaire.
    """
    checks.require(
      path.is_file(),
      f"{path} does not exist; make it with `jaxfair run "
      "configs/disclosure/...` and pass that run's directory",
    )
    again = "make it again with `jaxfair run configs/disclosure/...`"
    found: _File = _schema.read_json(path, _File, remedy=again)
    try:
      return found.questionnaire()
    except (TypeError, ValueError) as error:
      raise checks.ArgumentError(f"{path} is damaged ({error}); {again}") from None


Numbers = tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class _File:
  """What the file of a questionnaire holds."""

  title: str
  class_names: tuple[str, ...]
  feature_names: tuple[str, ...]
  columns: tuple[str, ...]
  sensitive: tuple[str, ...]
  layers: tuple[tuple[Any, ...], ...]
  mean: Numbers
  covariance: tuple[Numbers, ...]
  center: Numbers
  factor: Numbers

  def questionnaire(self) -> Questionnaire:
    """The questionnaire; raises ValueError where sizes do not fit."""
    width = len(self.feature_names)
    layers, inputs = [], width
    for weights, bias in self.layers:
      w, b = np.asarray(weights, np.float32), np.asarray(bias, np.float32)
      if w.shape != (inputs, len(b)):
        raise ValueError(f"a layer of {inputs} inputs has shape {w.shape}")
      layers.append((jnp.asarray(w), jnp.asarray(b)))
      inputs = len(b)
    classes = len(self.class_names)
    if not layers or inputs != (1 if classes == 2 else classes):
      raise ValueError(f"the last layer is not about {classes} classes")
    law = np.asarray(self.mean), np.asarray(self.covariance)
    sizes = {len(x) for x in (self.columns, self.mean, self.center, self.factor)}
    if sizes != {width} or law[1].shape != (width, width):
      raise ValueError(f"not everything is about {width} features")
    if not set(self.sensitive) <= set(self.columns):
      raise ValueError("a sensitive column is not there")
    return Questionnaire(
      title=self.title,
      class_names=self.class_names,
      feature_names=self.feature_names,
      columns=self.columns,
      sensitive=self.sensitive,
      network=Network(tuple(layers)),
      gaussian=Gaussian(*map(jnp.asarray, law)),
      center=np.asarray(self.center, np.float32),
      factor=np.asarray(self.factor, np.float32),
    )


def in_words(column: str) -> str:
  """A column's name as one says it: no underscores, no shouting."""
  words = column.replace("_", " ").replace("-", " ").strip()
  return words.lower() if words.isupper() else words


def _plain(array: Any) -> Any:
  return np.asarray(array, np.float32).tolist()
