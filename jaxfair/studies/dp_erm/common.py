"""What the studies of chapter 3 share: people, rows by group, gaps of excess risk.

The people of these studies are standardized with moments of all of them, as in the thesis. No
epsilon covers these moments, so nothing here is a release.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _fields, checks, data, models
from jaxfair import experiments as ex
from jaxfair.analysis import _by_group
from jaxfair.data import _loading
from jaxfair.experiments import _claims, _measures, _statistics, _study
from jaxfair.types import Examples, Model, Params

# The data sets of the thesis, and the column that defines the groups.
GROUPS = {
  "adult": "white",
  "bank": "age",
  "bank_balanced": "age",  # the selection that the thesis's authors used
  "wine": "color",
  "abalone": "grown_sex",
  "parkinsons": "sex",
  "churn": "gender",
  "credit": "sex",
  "stroke": "gender",
}
MAJORITY, MINORITY = "majority", "minority"
RISKS = ("excess_risk", "excess_risk_of_all")
LOSS = models.cross_entropy
LEARNT_NOTE = (
  "The balanced accuracy is that of the model without privacy on the people it was trained on, "
  "whose risk the chapter is about."
)
SCALING_NOTE = (
  "The features were standardized with moments of all people, as in the thesis. No epsilon "
  "covers them: these models are for study, not for release."
)


class ErmConfig(ex.Settings):
  """What the configs of all studies of chapter 3 have."""

  sets: ex.Sweep[str] = ("bank",)  # names of data sets
  seeds: ex.Count = 20  # repetitions of every setting
  max_people: Annotated[int, _fields.Within(50)] | None = None  # at most this many of a set

  def check(self) -> None:
    """Every set is one that can be loaded."""
    for name in self.sets:
      checks.one_of("sets", name, _loading.names())

  def drawn(self, dataset: data.Dataset, public: int = 0) -> tuple[int, ...]:
    """How many people of a set are trained on, and how many are public."""
    size = min(self.max_people or dataset.size, dataset.size - public)
    checks.require(
      size >= public,
      f"public_people={public} leaves {size} of the set's {dataset.size} people "
      "to train on; set fewer apart",
    )
    return (size, public) if public else (size,)


class Sample(NamedTuple):
  """The people of one cell."""

  people: Examples  # those who are trained on, with standardized features
  dataset: data.Dataset  # the set they were drawn from
  public: Examples | None = None  # others of the same set who are taken to be public, if any

  @property
  def num_groups(self) -> int:
    """How many groups there are."""
    return self.dataset.num_groups

  @property
  def roles(self) -> list[str]:
    """Majority and minority, so that panels of several sets share colors."""
    names = list(self.dataset.group_names)
    if len(names) != 2:
      return names
    # By the whole set: a sample may hold equally many of both.
    first, second = self.dataset.group_sizes.values()
    return [MAJORITY, MINORITY] if first >= second else [MINORITY, MAJORITY]

  def rows(
    self, cell: Mapping[str, Any], axes: Mapping[str, Sequence[Any]], values: Mapping[str, Any]
  ) -> ex.Table:
    """A table whose last axis is the groups, with their roles."""
    names = self.dataset.group_names
    table = ex.Table.from_arrays(cell, {**axes, "group": names}, values)
    roles = dict(zip(names, self.roles, strict=True))
    return table.plus(role=[roles[name] for name in table["group"]])


def named(name: str) -> ex.People:
  """A data set, with the thesis's groups if it is one of the thesis's."""
  return ex.People(name, group=GROUPS.get(name))


def people(config: ErmConfig) -> list[ex.People]:
  """The people that a config is about."""
  return [named(name) for name in config.sets]


def draw(
  config: ErmConfig,
  cell: _study.Cell,
  context: _study.Context,
  *,
  within_groups: bool = False,
  public: int = 0,
) -> Sample:
  """Draws the people of a cell and standardizes their features.

  Args:
    config: tells how many.
    cell: names the data set.
    context: its shared key decides who is drawn.
    within_groups: standardizes each group by its own moments; a model trained
      on such features can only be used on people whose group is known.
    public: how many people are set apart as public. The moments are then those
      of the public people alone.
  """
  dataset, key = context.load(named(str(cell["data"]))), context.shared_key
  rows = data.split_rows(dataset.size, config.drawn(dataset, public), key=key)
  parts = [dataset.examples.take(own) for own in rows]
  flat = [part.x.reshape(part.size, -1) for part in parts]
  if within_groups:
    scaled = [np.zeros_like(flat[0])]
    for group in np.unique(parts[0].group):
      own = parts[0].group == group
      scaled[0][own] = data.fit_scaler(flat[0][own]).apply(flat[0][own])
  else:
    scaler = data.fit_scaler(flat[-1])  # the public people, if there are any
    scaled = [scaler.apply(x) for x in flat]
  drawn = [
    jax.tree.map(jnp.asarray, part._replace(x=x)) for part, x in zip(parts, scaled, strict=True)
  ]
  return Sample(drawn[0], dataset, *drawn[1:])


def beside_constant(model: Model, params: Params, people: Examples, dataset: data.Dataset) -> Any:
  """Accuracy and balanced accuracy of a model, beside those of the majority class."""
  predicted = jnp.argmax(model.apply(params, people.x), -1)
  found = _measures.beside_constant(people.y, predicted, dataset.num_classes)
  return {"accuracy": jnp.mean(predicted == people.y), **found}


def group_losses(
  model: Model, params: Params, people: Examples, num_groups: int
) -> _by_group.ByGroup:
  """Mean loss of every group, and of everybody."""
  losses = LOSS(model.apply(params, people.x), people.y)
  return _by_group.mean_by_group(losses, people.group, num_groups)


def gap_ratio(
  told: str,
  setting: str,
  after: Any,
  before: Any,
  *,
  by: Sequence[str] = ("data",),
  of: Callable[[np.ndarray], np.ndarray] = lambda ratio: ratio,
  over: Callable[..., np.ndarray] = np.mean,
) -> _claims.Statistic:
  """The gap of excess risk at one value of a column over that at another.

  max_a |R_a(after) - R(after)| / max_a |R_a(before) - R(before)|, where R are
  means over seeds: the gap is that of the group that is furthest from everyone.

  Args:
    told: what the statistic is, in words.
    setting: the column.
    after: its value in the numerator; `min` and `max` choose among those that
      occur.
    before: its value in the denominator.
    by: columns that name a comparison.
    of: what is made of every ratio.
    over: combines the comparisons.
  """

  def statistic(labels: list[tuple[Any, ...]], risk: np.ndarray, of_all: np.ndarray) -> np.ndarray:
    gaps = np.abs(risk - of_all)
    values = [label[-2] for label in labels]
    ends = (w(values) if callable(w) else w for w in (after, before))
    worst = [gaps[[v == end for v in values]].max(axis=0) for end in ends]
    return of(worst[0] / worst[1])

  return _statistics.of_points(
    told, statistic, values=RISKS, points=(*by, setting, "group"), within=by, over=over
  )


def shrinks(share: str, *, by: Sequence[str] = ("data",), **setting: tuple[Any, Any]) -> Any:
  """In what share of comparisons the gap is smaller at the column's second value.

  Args:
    share: what is compared, in words.
    by: columns that name a comparison.
    **setting: the column that tells the remedy, with its value before and after.
  """
  [(column, (before, after))] = setting.items()
  told = f"share of {share} whose gap is smaller with {column} {after}"
  return gap_ratio(told, column, after, before, by=by, of=lambda own: own < 1)


def mean_ratio(share: str, *, by: Sequence[str] = ("data",), **setting: tuple[Any, Any]) -> Any:
  """The gap at the column's second value over that at its first, geometric mean."""
  [(column, (before, after))] = setting.items()
  return gap_ratio(
    f"gap with {column} {after} over that with {before}, geometric mean over {share}",
    column,
    after,
    before,
    by=by,
    of=np.log,
    over=lambda logs, axis: np.exp(np.mean(logs, axis)),
  )
