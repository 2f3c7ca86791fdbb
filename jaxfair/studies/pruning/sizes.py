"""Do larger groups have smaller gradients? (figures 5.14 and 5.15)

One group after the other is made to appear 1, 5, 10 and 20 times as often as
it does, and the network is trained on that.
"""

import functools
from typing import Annotated, Any, NamedTuple

import jax
import numpy as np

from jaxfair import _fields, checks, data, pruning, training
from jaxfair import experiments as ex
from jaxfair.experiments import _claims, _people, _study
from jaxfair.pruning import _group_profile
from jaxfair.studies.pruning import common
from jaxfair.types import Examples

UPSAMPLED, OTHERS = "upsampled", "others"


class Config(common.PruningConfig):
  """Settings."""

  groups: tuple[str, ...] = ()  # names of those that are upsampled, each in turn; empty for all
  # How often its people are on the list, beside others.
  factors: _fields.Compared[Annotated[float, _fields.Within(1.0)]] = (1.0, 5.0, 10.0, 20.0)
  # Length of the list of people that is trained on; a person of the group is on it `factor` times
  # as often as another.
  rows: int = 20000

  def check(self) -> None:
    """A batch comes from the list."""
    super().check()
    checks.integer("rows", self.rows, low=self.train.batch_size)


def _precheck(config: Config, people: data.Dataset) -> None:
  for name in config.groups:
    checks.one_of("groups", name, people.group_names)


def _cells(config: Config) -> list[_study.Cell]:
  """One cell per group that is upsampled."""
  names = config.groups or _people.load_people(config.data)[0].group_names
  return [{"upsampled": name} for name in names]


class Found(NamedTuple):
  """Profiles on training and test people."""

  trained: _group_profile.NonPrivateProfile
  tested: _group_profile.NonPrivateProfile
  learned: dict[str, jax.Array]


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All factors and seeds of one group, in one program."""
  sample = common.draw(config, context)
  names = sample.dataset.group_names
  chosen = names.index(str(cell["upsampled"]))
  group = np.asarray(sample.people.group)

  def one(own: Any, everybody: Examples) -> Found:
    key, listed, train_rows, test_rows = own
    train, test = everybody.take(train_rows), everybody.take(test_rows)
    fit = training.lagrangian(
      sample.model, common.LOSS, everybody.take(listed), config.train.config(), key=key
    )
    look = functools.partial(
      pruning.group_profile, sample.model, common.LOSS, fit.params, num_groups=sample.num_groups
    )
    return Found(
      trained=look(train),
      tested=look(test, gradients=False),
      learned=common.learned(sample, fit.params, test),
    )

  # The same start and order of batches for every factor: pairs are compared.
  keys = jax.random.split(context.key, config.seeds)
  pairs = np.indices((len(config.factors), config.seeds)).reshape(2, -1)
  train, test = sample.rows
  listed = [
    upsampled(
      train[seed], group[train[seed]] == chosen, config.factors[factor], config.rows, seed=int(seed)
    )
    for factor, seed in pairs.T
  ]
  seeds = pairs[1]
  own = (keys[seeds], np.stack(listed), train[seeds], test[seeds])
  found = common.for_each_seed(one, own, sample)
  shape = (len(config.factors), config.seeds)
  found = jax.tree.map(lambda v: v.reshape(*shape, *v.shape[1:]), found)
  axes: dict[str, Any] = {"factor": config.factors, "seed": range(config.seeds)}
  values = {name: getattr(found.trained, name) for name in ("gradient_norm", "loss")}
  values["accuracy"] = found.tested.accuracy
  table = common.group_rows(cell, axes, names, values, found.learned)
  return table.plus(
    role=[
      {cell["upsampled"]: UPSAMPLED, ex.EVERYONE: ex.EVERYONE}.get(name, OTHERS)
      for name in table["group"]
    ]
  )


def upsampled(
  rows: np.ndarray, member: np.ndarray, factor: float, size: int, *, seed: int
) -> np.ndarray:
  """[size] rows, in which members appear `factor` times as often as others.

  Args:
    rows: who there is.
    member: which of them appear more often.
    factor: how much.
    size: of the list; longer than it is wide, so that rounding to whole
      appearances matters little.
    seed: who is on it once more than the next.
  """
  weight = np.where(member, factor, 1.0)
  wanted = size * weight / weight.sum()
  times = np.floor(wanted).astype(int)
  chance = wanted - times
  short = size - int(times.sum())
  if short:
    drawn = np.random.default_rng(seed).choice(
      len(rows), short, replace=False, p=chance / chance.sum()
    )
    times[drawn] += 1
  return np.repeat(rows, times).astype(np.int32)


def _notes(config: Config) -> list[str]:
  return [
    *common.notes(config),
    f"Upsampled people are trained on from a list of {config.rows} rows, on which they appear that "
    "many times as often as others. Gradients are of the means of the people themselves, each "
    "once.",
  ]


FALL = ex.trend("gradient_norm", "factor") < 0


def _below_others(table: ex.Table) -> dict[str, _claims.Check]:
  """The upsampled group's gradient norm is below every other's."""
  own = {"role": UPSAMPLED}
  others = table.where(role=OTHERS).unique("group")
  return {n: ex.difference("gradient_norm", {"group": n}, own) > 0 for n in others}


STUDY = ex.Study(
  name="pruning.sizes",
  summary="Do larger groups have smaller gradients?",
  config=Config,
  cells=_cells,
  run=run,
  precheck=_precheck,
  notes=_notes,
  claims={
    "falls: Whichever group is upsampled, its gradient norm falls [Prop. 5.1]": FALL.at(
      role=UPSAMPLED
    ).in_each("upsampled"),
    "smallest: Upsampled by the largest factor, its gradient norm is below every other's, "
    "whichever it is [Fig. 5.14; Fig. 5.15]": _claims.every(_below_others, factor=max).in_each(
      "upsampled"
    ),
  },
  figures=(
    ex.lines(
      "norms: Gradient norms as one group is upsampled",
      "gradient_norm ~ factor, group | upsampled",
      log="x",
    ),
  ),
  reference={"factor": min},
  titles={"factor": "how often its people appear"},
  summaries=(
    ex.summary("At the end of training", "gradient_norm, loss, accuracy ~ upsampled, factor, role"),
  ),
)
