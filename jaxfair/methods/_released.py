"""A released model: a folder that another process loads and predicts with.

release/
  release.json      network, encoder, guarantee, names, abstention rule, versions
  arrays.npz        parameters and scaler, as plain arrays
  model_card.md     what is promised and what is not, for people;
                    also as .html and, for programs, as .json
  sha256.json       a digest of each of these

The digests detect damage and accidental edits. They are not a signature: anyone who can write the
folder can also write the digests.

Counters of the abstention rule are not part of a release, which never changes:
they belong to a deployment (`Released.abstainer`, `jaxfair predict --state`).
"""

import dataclasses
import functools
import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxfair
from jaxfair import _notebook, _schema, accounting, checks, data, models
from jaxfair.data import _scaling
from jaxfair.fairness import Abstainer, CounterRule
from jaxfair.methods import _model_card, _release_files
from jaxfair.methods._release_files import ARRAYS, RECORD, ReleaseError
from jaxfair.pate._attribute import AtTheseVotes, Protection
from jaxfair.types import Array, Features, FeaturesLike, Model, Params

FORMAT = 2
SCALER = "scaler."
TARGETS = "abstention.targets"
CHUNK = 256  # people at a time: one program, and the same bits however many come at once


@dataclasses.dataclass(frozen=True)
class Network:
  """A network by name, so that it can be written down.

  Attributes:
    name: in `models.NETWORKS`.
    num_classes: number of logits.
    hidden: widths of dense layers, where it has any to choose.
    width: channels of its first convolution; its own by default.
  """

  name: str
  num_classes: int
  hidden: tuple[int, ...] = (64,)
  width: int | None = None

  @property
  def model(self) -> Model:
    """The network itself."""
    return models.network(self.name, self.num_classes, hidden=self.hidden, width=self.width)


@dataclasses.dataclass(frozen=True, eq=False)
class Released:
  """A released model with everything needed to use it: encoder, scaler, guarantee and names.

  Attributes:
    method: how it was made.
    settings: with which settings, as JSON values.
    network: what its parameters belong to.
    params: its parameters.
    guarantee: what is protected, and what is not.
    class_names: the name of class id 0, 1, ...
    group_names: the name of group id 0, 1, ...
    shape: shape of one person's features.
    dtype: of the features, before scaling.
    encoder: makes features of a table of people; None if the model was trained on arrays.
    scaler: applied to features first; None if they are used as they are.
    row_norm: rows are then projected into a ball of this radius, if set.
    abstention: predictions are shown by this rule; its `max_gap` is the
      margin between groups. None shows all.
    answer_targets: [classes] shares of the classes that the answers to every group aim at, planned
      on public people; None offers all predictions to the rule.
    data_name: what the data set is called.
    spending: sentences on everything released from the data set so far.
    intended_use: intended use, as stated by the person who released the model.
    released_on: the day, as in "2026-11-18".
  """

  method: str
  settings: dict[str, Any]
  network: Network
  params: Params
  guarantee: Protection
  class_names: tuple[str, ...]
  group_names: tuple[str, ...]
  shape: tuple[int, ...]
  dtype: str = "float32"
  encoder: data.Encoder | None = None
  scaler: _scaling.Scaler | None = None
  row_norm: float | None = None
  abstention: CounterRule | None = None
  answer_targets: np.ndarray | None = None
  data_name: str = "private data"
  spending: tuple[str, ...] = ()
  intended_use: str = ""
  released_on: str = ""

  def prepare(self, x: FeaturesLike) -> np.ndarray:
    """[n, ...] features as the model was trained on them."""
    x = np.asarray(x, self.dtype)
    checks.require(
      x.shape[1:] == self.shape,
      f"x has features of shape {x.shape[1:]}, but the model was trained on {self.shape}; pass "
      "the same features, unscaled",
    )
    return np.asarray(self._scaled(x))

  def _scaled(self, x: Features) -> Array:
    """Scaled and bounded; NumPy in, NumPy out, else JAX."""
    if self.scaler is not None:
      x = self.scaler.apply(x)
    return x if self.row_norm is None else data.bound_rows(x, self.row_norm)

  def traced(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """As `answer`, for use inside a program; the last bits may differ from it."""
    return _answers(self.network.model, self.params, self._scaled(x))

  def answer(self, x: FeaturesLike) -> tuple[np.ndarray, np.ndarray]:
    """[n] class ids and [n, C] probabilities, from features as they were recorded.

    The bits of a person's answer do not depend on the rest of the batch: programs have one size.
    """
    x = self.prepare(x)
    checks.finite("x", x)
    parts = [(np.zeros(0, np.int32), np.zeros((0, len(self.class_names)), np.float32))]
    for start in range(0, len(x), CHUNK):
      part = x[start : start + CHUNK]
      padded = np.concatenate([part, np.broadcast_to(part[-1:], (CHUNK - len(part), *self.shape))])
      labels, scores = map(np.asarray, _answers(self.network.model, self.params, padded))
      parts.append((labels[: len(part)], scores[: len(part)]))
    all_labels, all_scores = zip(*parts, strict=True)
    return np.concatenate(all_labels), np.concatenate(all_scores)

  def scores(self, x: FeaturesLike) -> np.ndarray:
    """[n, C] probability of each class, from features as they were recorded."""
    return self.answer(x)[1]

  def predict(self, x: FeaturesLike) -> np.ndarray:
    """[n] class ids, from features as they were recorded."""
    return self.answer(x)[0]

  def abstainer(self, state: str | pathlib.Path | None = None) -> Abstainer:
    """The gate that keeps predictions within the margin between groups.

    Args:
      state: a file of `Abstainer.save` to continue with; a new gate if there is no such file.
    """
    if self.abstention is None:
      raise checks.ArgumentError(
        f"this model of {self.method} was released without a margin between "
        "groups; show its predictions as they are, or set max_gap"
      )
    sizes = {"num_groups": len(self.group_names), "num_classes": len(self.class_names)}
    if state is None or not pathlib.Path(state).exists():
      return Abstainer(self.abstention, targets=self.answer_targets, **sizes)
    gate = Abstainer.restore(state)
    checks.require(
      gate.rule == self.abstention and gate.counters.shape == tuple(sizes.values()),
      f"{state} belongs to another rule ({gate.rule}) than this release "
      f"({self.abstention}); name another file",
    )
    plans = [np.ones(0) if one is None else one for one in (gate.targets, self.answer_targets)]
    checks.require(
      np.array_equal(plans[0], plans[1]),
      f"{state} belongs to another plan of answers than this release; name another file",
    )
    return gate

  def _repr_html_(self) -> str:
    title = f"{self.method}: {self.network.name} for {' or '.join(self.class_names)}"
    about = [("data", self.data_name), ("privacy", str(self.guarantee.guarantee))]
    return _notebook.facts(title, [*about, *self.guarantee.told()])

  def save(self, folder: str | pathlib.Path) -> None:
    """Writes a folder for `load`, whole or not at all; it must be new."""
    scaler = {} if self.scaler is None else self.scaler._asdict()
    others = {SCALER + name: value for name, value in scaler.items()}
    if self.answer_targets is not None:
      others[TARGETS] = self.answer_targets
    record = dataclasses.asdict(_record(self))
    files = {
      RECORD: json.dumps(record, indent=2).encode(),
      ARRAYS: _release_files.pack(self.params, others),
      **_model_card.files(record, planned=self.answer_targets is not None),
    }
    _release_files.write(pathlib.Path(folder), files)


def load(folder: str | pathlib.Path) -> Released:
  """Loads a release, in any process.

  Raises:
    ReleaseError: if the folder is not a release, or was changed since it was written.
  """
  folder = pathlib.Path(folder)
  files = _release_files.verified(folder)
  try:
    values = json.loads(files[RECORD])
    checks.require(
      isinstance(values, dict) and values.get("format") == FORMAT,
      f"{folder} has format {values.get('format')}; this version reads {FORMAT}",
    )
    record = _schema.build(_Record, values, where=f"{folder / RECORD}: ")
    return _released(record, _release_files.unpack(files[ARRAYS]), folder)
  except (ValueError, KeyError) as error:
    if isinstance(error, checks.ArgumentError):
      raise ReleaseError(str(error)) from None
    raise ReleaseError(f"{folder} cannot be read ({error})") from error


@functools.partial(jax.jit, static_argnums=0)
def _answers(model: Model, params: Params, x: jax.Array) -> tuple[jax.Array, jax.Array]:
  logits = model.apply(params, x)
  return jnp.argmax(logits, axis=-1).astype(jnp.int32), jax.nn.softmax(logits, axis=-1)


@dataclasses.dataclass(frozen=True)
class _Guarantee:
  epsilon: float
  delta: float
  relation: str
  unit: str
  accountant: str
  protected: tuple[str, ...]
  not_protected: tuple[str, ...]
  for_release: bool
  at_votes: AtTheseVotes | None = None


@dataclasses.dataclass(frozen=True)
class _Rule:
  max_gap: float
  min_count: int
  disparity: str
  guard: str


@dataclasses.dataclass(frozen=True)
class _Record:
  """`release.json`."""

  format: int
  method: str
  settings: dict[str, Any]
  network: Network
  guarantee: _Guarantee
  class_names: tuple[str, ...]
  group_names: tuple[str, ...]
  shape: tuple[int, ...]
  dtype: str
  encoder: dict[str, Any] | None
  row_norm: float | None
  abstention: _Rule | None
  data_name: str
  spending: tuple[str, ...]
  intended_use: str
  released_on: str
  versions: dict[str, str]


# Fields that a release and its record have in common, as they are.
SAME = (
  *("method", "settings", "network", "class_names", "group_names", "shape", "dtype", "row_norm"),
  *("data_name", "spending", "intended_use", "released_on"),
)


def _record(own: Released) -> _Record:
  told, value = own.guarantee, own.guarantee.guarantee
  rule = own.abstention
  return _Record(
    format=FORMAT,
    **{name: getattr(own, name) for name in SAME},
    encoder=None if own.encoder is None else own.encoder.to_record(),
    guarantee=_Guarantee(
      value.epsilon,
      value.delta,
      value.relation.value,
      value.unit,
      value.accountant,
      told.protected,
      told.not_protected,
      bool(told.for_release),
      told.at_votes,
    ),
    abstention=None
    if rule is None
    else _Rule(float(rule.max_gap), int(rule.min_count), rule.disparity, rule.guard),
    versions={"jaxfair": jaxfair.__version__, "jax": jax.__version__, "numpy": np.__version__},
  )


def _released(record: _Record, arrays: dict[str, np.ndarray], folder: pathlib.Path) -> Released:
  scaler = None
  if SCALER + "center" in arrays:
    parts: dict[str, Any] = {name: arrays[SCALER + name] for name in _scaling.Scaler._fields}
    scaler = _scaling.Scaler(**{**parts, "limit": float(parts["limit"])})
  one = jax.ShapeDtypeStruct(record.shape, jnp.float32 if scaler else record.dtype)
  like = jax.eval_shape(record.network.model.init, jax.random.key(0), one)
  told, rule = record.guarantee, record.abstention
  promised = accounting.PrivacyGuarantee(
    told.epsilon, told.delta, accounting.Relation(told.relation), told.unit, told.accountant
  )
  return Released(
    **{name: getattr(record, name) for name in SAME},
    params=_release_files.params_like(like, arrays, str(folder)),
    guarantee=Protection(
      promised, told.protected, told.not_protected, told.for_release, told.at_votes
    ),
    encoder=None if record.encoder is None else data.Encoder.from_record(record.encoder),
    scaler=scaler,
    abstention=CounterRule(**dataclasses.asdict(rule)) if rule else None,
    answer_targets=arrays.get(TARGETS),
  )
