"""Measures a released model on test people; written beside the release, never inside.

folder/
  release/       may be published
  evaluation/    stays: figures without noise, of people whom no guarantee covers
    evaluation.json
    evaluation.md
    evaluation.html
"""

import dataclasses
import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _notebook, _whole_files
from jaxfair.accounting._guarantee import round_up
from jaxfair.fairness import _bootstrap, _confusion, _counter, rates
from jaxfair.fairness._confusion import with_everybody
from jaxfair.fairness._intervals import Interval
from jaxfair.methods import _documents
from jaxfair.methods._documents import Block, Grid, Section, Warned
from jaxfair.methods._preprocessing import unused_columns
from jaxfair.methods._released import Released
from jaxfair.methods._sanitized import read_epsilons
from jaxfair.types import Examples, Key

RELEASED, PLAIN, MAJORITY = "released model", "without privacy", "majority class"
ANSWERED = "released model, where it answers"
NAME = "evaluation"
FEW = 30  # people below which an interval says little
ONE_CLASS = 0.99  # share of people from which on a model gives one class to nearly everybody
EVERYONE = "everyone"


@dataclasses.dataclass(frozen=True)
class NonPrivateEvaluation:
  """Figures of test people, without noise; not for release.

  Attributes:
    title: of what.
    sizes: test people by group.
    models: figures by model, each as [estimate, low, high] of a 95% bootstrap interval over
      test people: accuracy, balanced_accuracy, parity_gap, odds_gap.
    groups: the released model's figures by group: accuracy and the share of each class.
    coverage: share of each group that its abstention rule answers, in the order of the test
      people; None without a rule.
    warnings: sentences that must not be overlooked.
    epsilons: for any votes, sanitized (if it was bought) and without noise, of a method whose
      teachers vote; None for others.
  """

  title: str
  sizes: dict[str, int]
  models: dict[str, dict[str, list[float]]]
  groups: dict[str, dict[str, list[float]]]
  coverage: dict[str, float] | None
  warnings: tuple[str, ...]
  epsilons: dict[str, float] | None = None

  def to_pandas(self) -> Any:
    """A `pandas.DataFrame`: a row for each group and figure, with its estimate and interval."""
    rows = [
      (group, self.sizes[group], name, *interval)
      for group, figures in self.groups.items()
      for name, interval in figures.items()
    ]
    titles = ("group", "size", "figure", "estimate", "low", "high")
    return _notebook.frame(dict(zip(titles, zip(*rows, strict=True), strict=True)))

  def write(self, folder: pathlib.Path) -> pathlib.Path:
    """Writes `folder / "evaluation"`, in place of an earlier one; returns the page."""
    place = _whole_files.owner_only(folder / NAME)
    parts = self.title, _lead(self), _sections(self)
    files = {
      "json": json.dumps(dataclasses.asdict(self), indent=2),
      "md": _documents.markdown(*parts),
      "html": _documents.page(*parts),
    }
    for suffix, text in files.items():
      _whole_files.write_whole(place / f"{NAME}.{suffix}", text)
    return place / f"{NAME}.html"


def read_evaluation(folder: pathlib.Path) -> NonPrivateEvaluation:
  """What `NonPrivateEvaluation.write` wrote to this folder."""
  text = (folder / NAME / f"{NAME}.json").read_text(encoding="utf-8")
  return NonPrivateEvaluation(**json.loads(text))


def evaluate(
  released: Released,
  test: Examples,
  *,
  plain: np.ndarray | None = None,
  work: pathlib.Path | None = None,
  key: Key,
) -> NonPrivateEvaluation:
  """Measures a released model on people it was not trained on.

  Args:
    released: the model.
    test: people with features as they were recorded.
    plain: [n] class ids by a model without privacy, to compare with.
    work: folder of the release that is not published, for the epsilons of votes.
    key: for the bootstrap.

  Privacy:
    Nothing here is noisy. The figures are for those who hold the data.
  """
  labels = released.predict(test.x)
  y, group = np.asarray(test.y), np.asarray(test.group)
  num_classes, num_groups = len(released.class_names), len(released.group_names)
  majority = np.full_like(labels, np.bincount(y, minlength=num_classes).argmax())
  predicted = {RELEASED: labels, MAJORITY: majority}
  if plain is not None:
    predicted[PLAIN] = np.asarray(plain)
  coverage = None
  if released.abstention is not None:
    gate = released.abstainer()
    shown = gate.answer(labels, group)
    if (shown != _counter.REFUSED).any():
      predicted[ANSWERED] = shown
    coverage = dict(zip(released.group_names, map(float, gate.coverage), strict=True))
  models, groups = {}, {}
  for i, (name, own) in enumerate(predicted.items()):
    shown = own != _counter.REFUSED
    counts = _confusion.confusion_counts(
      y[shown],
      own[shown],
      sensitive_features=group[shown],
      num_classes=num_classes,
      num_groups=num_groups,
    )
    found = _bootstrap.bootstrap_counts(_figures, counts, key=jax.random.fold_in(key, i))
    models[name] = {what: _ends(found, what) for what in ("balanced_accuracy", "parity_gap")}
    models[name] |= {"accuracy": _ends(found, "accuracy", -1), "odds_gap": _ends(found, "odds_gap")}
    if name == RELEASED:
      for g, told in enumerate((*released.group_names, EVERYONE)):
        shares = {f"share of {c}": _ends(found, "shares", g, k) for k, c in _shown(released)}
        groups[told] = {"accuracy": _ends(found, "accuracy", g)} | shares
  sizes = dict(zip(released.group_names, np.bincount(group, minlength=num_groups), strict=True))
  return NonPrivateEvaluation(
    title=f"Evaluation of {released.method} on {released.data_name}",
    sizes={name: int(size) for name, size in sizes.items()},
    models=models,
    groups=groups,
    coverage=coverage,
    warnings=(*_warnings(models, predicted, sizes, num_classes), *_unused(released)),
    epsilons=None if work is None else read_epsilons(work),
  )


def _figures(counts: jax.Array) -> dict[str, jax.Array]:
  """All figures of one model, from [G, C, C] counts; everybody is the last group."""
  everyone = with_everybody(counts)
  shares = rates.selection_rate(everyone) if counts.shape[-1] > 2 else _both(everyone)
  recall = rates.true_positive_rate(counts)
  false = rates.false_positive_rate(counts)
  return {
    "accuracy": rates.accuracy(everyone),
    "balanced_accuracy": rates.balanced_accuracy(everyone[-1]),
    "shares": shares,
    "parity_gap": _spread(shares[:-1]),
    "odds_gap": jnp.maximum(_spread(recall), _spread(false)),
  }


def _both(counts: jax.Array) -> jax.Array:
  """[G, 2] shares of both classes."""
  chosen = rates.selection_rate(counts)
  return jnp.stack([1 - chosen, chosen], axis=-1)


def _spread(values: jax.Array) -> jax.Array:
  """The largest difference between groups, over classes; empty groups are left out."""
  return jnp.max(jnp.nanmax(values, axis=0) - jnp.nanmin(values, axis=0))


def _ends(found: Interval, name: str, *place: int) -> list[float]:
  return [float(np.asarray(part[name])[place]) for part in (found.estimate, found.low, found.high)]


def _shown(released: Released) -> list[tuple[int, str]]:
  """Classes whose shares are listed: the second of two, else all."""
  named = list(enumerate(released.class_names))
  return named[1:] if len(named) == 2 else named


def _unused(released: Released) -> list[str]:
  if released.encoder is None or released.scaler is None:
    return []
  names = unused_columns(released.encoder, released.scaler)
  if not names:
    return []
  return [
    f"The model does not use {', '.join(names)}: there are too few people to find the scale of "
    f"these numbers within the budget. Declare the range, --range '{names[0]}=LOW:HIGH', or name "
    "public people."
  ]


def _warnings(
  models: Mapping[str, Mapping[str, list[float]]],
  predicted: Mapping[str, np.ndarray],
  sizes: Mapping[str, int],
  num_classes: int,
) -> list[str]:
  told = []
  balanced = models[RELEASED]["balanced_accuracy"]
  if not balanced[1] > 1 / num_classes:
    told.append(
      f"This model is not better than a constant: its balanced accuracy is {_number(balanced)}, "
      f"and the majority class has {1 / num_classes:.3f}. A small gap of such a model is not a "
      "sign of fairness. Try a larger epsilon, more people, or another method."
    )
  most = {
    name: max(np.bincount(predicted[name], minlength=num_classes)) / len(predicted[name])
    for name in (RELEASED, PLAIN)
    if name in predicted
  }
  if most[RELEASED] >= ONE_CLASS and most.get(PLAIN, 0.0) < ONE_CLASS:
    told.append(
      f"This model predicts one class for {100 * most[RELEASED]:.1f}% of the people, which the "
      "model "
      "without privacy does not."
    )
  few = [f"{name} ({size})" for name, size in sizes.items() if size < FEW]
  if few:
    told.append(f"Groups with too few test people for an interval: {', '.join(few)}.")
  return told


def _lead(own: NonPrivateEvaluation) -> list[Block]:
  return [
    Warned(
      "NOT FOR RELEASE: these figures are computed from test people without noise, and no "
      "guarantee covers them."
    ),
    *map(Warned, own.warnings),
    f"Measured on {sum(own.sizes.values()):,} people whom the model was not trained on. In "
    "brackets: 95% interval over test people (bootstrap).",
  ]


def _sections(own: NonPrivateEvaluation) -> list[Section]:
  heads = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "parity_gap": "gap in shares (demographic parity)",
    "odds_gap": "gap in error rates (equalized odds)",
  }
  order = [name for name in (RELEASED, ANSWERED, PLAIN, MAJORITY) if name in own.models]
  compared = Grid(
    ("model", *heads.values()),
    tuple((name, *(_number(own.models[name][what]) for what in heads)) for name in order),
  )
  columns = list(own.groups[EVERYONE])
  covered = own.coverage
  rows = []
  for name, figures in own.groups.items():
    size = own.sizes.get(name, sum(own.sizes.values()))
    few = name != EVERYONE and size < FEW
    cells = [_number(figures[what][:1] if few else figures[what]) for what in columns]
    if covered is not None:
      cells.append(_number([covered[name]]) if name in covered else "")
    rows.append((name, f"{size:,}", *cells))
  by_group = Grid(
    ("group", "people", *columns, *(() if covered is None else ("answered",))), tuple(rows)
  )
  sections = [
    Section("Compared with a model without privacy and the majority class", (compared,)),
    Section("By group", (by_group,)),
  ]
  if own.epsilons:
    told = Grid(("epsilon", "value"), tuple(epsilon_rows(own)))
    sections.append(Section("Three epsilons", (told,)))
  return sections


def epsilon_rows(own: NonPrivateEvaluation) -> list[tuple[str, str]]:
  """The epsilons by name, rounded up."""
  names = {
    "any_votes": "for any votes (charged)",
    "sanitized": "sanitized, at these votes (may be published)",
    "not_publishable": "at these votes, without noise (not for release)",
  }
  found = own.epsilons or {}
  return [
    (told, f"{round_up(found[name]):g}" if name in found else "none was bought")
    for name, told in names.items()
  ]


def _number(ends: list[float]) -> str:
  """An estimate with its interval, if it has one."""
  value, *bounds = ends
  if math.isnan(value):
    return "not defined"
  told = f"{value:.3f}"
  if not bounds or any(map(math.isnan, bounds)):
    return told
  return f"{told} [{bounds[0]:.3f}, {bounds[1]:.3f}]"
