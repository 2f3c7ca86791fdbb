"""Why a group pays for the privacy of one trained model.

Reads the directory of a `train` run: what privacy cost each group there, and
what clipping and noise do to each group at the released model.
"""

import dataclasses
import pathlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import analysis, data, fairness, methods
from jaxfair.experiments import _config as configs
from jaxfair.experiments import _runs
from jaxfair.experiments._folders import RunError
from jaxfair.experiments._measures import EVERYONE
from jaxfair.experiments._people import load_people
from jaxfair.experiments._population import dry
from jaxfair.experiments._table import Table
from jaxfair.studies import train
from jaxfair.types import Examples

MOST_PEOPLE = 4_000  # on whom the terms are computed; more changes little
FACTORS = ("input_norm", "gradient_norm", "closeness", "trace")
CLIPPING, NOISE = "clipping", "noise"
DESCENTS = ("dp_sgd", "fair_dp_sgd")
AGAIN = "delete the run directory and run its config again"


class Cost(NamedTuple):
  """What privacy adds to a group's loss: mean over seeds, 95% interval."""

  loss: float
  low: float
  high: float
  accuracy: float


class NonPrivateExplanation(NamedTuple):
  """Who pays, how much, through which term and factor. Not for release.

  Attributes:
    groups: names.
    epsilon: of the training whose costs these are.
    costs: of every group, on held-out people.
    payer: the group that pays most.
    apart: interval of its loss cost minus that of the group that pays least,
      paired over seeds.
    terms: term -> [G] expected change of the loss in the last step.
    factors: factor -> [G] means over each group's people.
    of_all: factor -> mean over everybody.
    clipped: [G] share of each group's people whose gradients are clipped.
    term: the one through which the payer loses more.
    factor: the one in which the payer stands out, of those behind the term.
    large_gradient: norm that a tenth of the payer's gradients exceed.
    l2_clip: the bound that was used.
    note: a caveat; may be empty.
  """

  groups: tuple[str, ...]
  epsilon: float
  costs: dict[str, Cost]
  payer: str
  apart: fairness.Interval
  terms: dict[str, np.ndarray]
  factors: dict[str, np.ndarray]
  of_all: dict[str, float]
  clipped: np.ndarray
  term: str
  factor: str
  large_gradient: float
  l2_clip: float
  note: str


class Paid(NamedTuple):
  """Who pays, and how much; see `NonPrivateExplanation`."""

  costs: dict[str, Cost]
  payer: str
  apart: fairness.Interval
  epsilon: float


def who_pays(table: Table, settings: train.Config) -> Paid:
  """What the training nearest to the released one costs each group, on held-out people.

  Args:
    table: rows of a `train` run.
    settings: of the run.
  """
  wanted = settings.release_epsilon
  assert wanted is not None
  epsilon = min(settings.epsilons, key=lambda e: abs(np.log(e / wanted)))
  rows = table.where(training=train.training_name(settings, settings.released_method, epsilon))
  costs, per_seed = {}, {}
  for name in rows.unique("group"):
    if name != EVERYONE:
      per_seed[name] = rows.where(group=name)["loss_cost"]
      found = fairness.seed_interval(per_seed[name])
      accuracy = np.nanmean(rows.where(group=name)["accuracy_cost"])
      costs[name] = Cost(*map(float, (found.estimate, found.low, found.high, accuracy)))
  order = sorted(costs, key=lambda name: costs[name].loss)
  apart = fairness.paired_interval(per_seed[order[-1]], per_seed[order[0]])
  return Paid(costs, order[-1], apart, epsilon)


def explain_run(folder: pathlib.Path) -> NonPrivateExplanation:
  """Explains who pays in a finished `train` run with a released model.

  Args:
    folder: its run directory.

  Raises:
    RunError: if it is no such run; the message says what to do.
  """
  settings, table = _read(folder)
  people, _ = load_people(settings.data)
  used = table.unique("data")
  if used != [people.name]:
    raise RunError(
      f"{folder} is a run on {used[0]}, but {people.name} is what its config "
      "gives now; run it again"
    )
  released = methods.load(folder / "release")
  assert settings.release_epsilon is not None
  _, plan = settings.parted(
    people, settings.released_method, settings.release_epsilon, key=jax.random.key(0), buy=dry
  )
  _, people = settings.with_public(people)
  people = _features_of(released, people)
  if released.shape != people.examples.x.shape[1:]:
    raise RunError(
      f"{folder / 'release'} takes {released.shape} features, and {people.name} has "
      f"{people.examples.x.shape[1:]}, so it is not the model of this run; {AGAIN}"
    )
  sample = _sample(people, released)
  costs, payer, apart, epsilon = who_pays(table, settings)
  found = _at_model(plan, released, sample, people.num_groups)
  terms, factors, of_all = found.terms, found.factors, found.of_all
  which = people.group_names.index(payer)
  term = max(terms, key=lambda name: terms[name][which])
  behind = "gradient_norm" if term == CLIPPING else "closeness"
  factor = max((behind, "input_norm"), key=lambda name: factors[name][which] / of_all[name])
  note = ""
  if plan.settings.optimizer != "sgd":
    note = (
      "The terms are those of plain descent; this model was trained with "
      f"{plan.settings.optimizer}."
    )
  own = found.gradients[np.asarray(sample.group) == which]
  return NonPrivateExplanation(
    groups=people.group_names,
    epsilon=epsilon,
    costs=costs,
    payer=payer,
    apart=apart,
    terms=terms,
    factors=factors,
    of_all=of_all,
    clipped=found.clipped,
    term=term,
    factor=factor,
    large_gradient=float(np.quantile(own, 0.9)),
    l2_clip=plan.settings.l2_clip,
    note=note,
  )


def _read(folder: pathlib.Path) -> tuple[train.Config, Table]:
  """The settings and the rows."""
  path = folder / "config.toml"
  if not path.is_file():
    raise RunError(
      f"{folder} is not a run directory; make one with "
      "`jaxfair run configs/train/dp_sgd_adult.toml`"
    )
  values = configs.parse(path)
  if values.get("study") != "train":
    raise RunError(
      f"{folder} is a run of study {values.get('study')!r}; explain takes runs "
      "of 'train', such as configs/train/dp_sgd_adult.toml"
    )
  made = _runs.plan(train.STUDY, values, where=f"{path}: ")
  if made.settings.release_epsilon is None:
    raise RunError(f"{folder} holds no released model; set release_epsilon and run it again")
  method = made.settings.released_method
  if method not in DESCENTS:
    raise RunError(
      f"{folder} released a model of {method}; explain takes apart the steps of "
      f"{' and '.join(DESCENTS)}: what privacy costs each group is on the run's page"
    )
  for name in ("results.csv", "release"):
    if not (folder / name).exists():
      raise RunError(
        f"{folder} has no {name}: the run is not finished; the same `jaxfair run` continues it"
      )
  return made.settings, Table.read(folder / "results.csv")


def _features_of(released: methods.Released, people: data.Dataset) -> data.Dataset:
  """The people with the features that the model takes: rare categories may have been left out."""
  if released.encoder is None or people.encoder is None:
    return people
  known = people.encoder.feature_names
  kept = [known.index(name) for name in released.encoder.feature_names if name in known]
  return dataclasses.replace(
    people,
    examples=people.examples._replace(x=people.examples.x[:, kept]),
    feature_names=tuple(known[place] for place in kept),
    columns=tuple(people.columns[place] for place in kept),
  )


def _sample(people: data.Dataset, released: methods.Released) -> Examples:
  size = min(MOST_PEOPLE, people.size)
  (rows,) = data.split_rows(people.size, (size,), key=jax.random.key(0))
  some = people.examples.take(rows)
  return jax.tree.map(jnp.asarray, some._replace(x=released.prepare(some.x)))


class _AtModel(NamedTuple):
  """Terms and factors of every group at the released model."""

  terms: dict[str, np.ndarray]
  factors: dict[str, np.ndarray]
  of_all: dict[str, float]
  clipped: np.ndarray
  gradients: np.ndarray


def _at_model(
  plan: methods.Plan, released: methods.Released, people: Examples, num_groups: int
) -> _AtModel:
  private, loss, model, params = plan.settings, plan.loss, plan.model, released.params
  step = analysis.StepSettings(
    learning_rate=private.learning_rate,
    l2_clip=private.l2_clip,
    noise_multiplier=float(plan.config.noise_multiplier),
    sampling_rate=min(1.0, private.batch_size / people.size),
  )
  found = analysis.decompose(
    model, loss, params, people, step, num_groups=num_groups, probes=16, key=jax.random.key(0)
  )
  norms = analysis.norms(model, loss, params, people, num_groups=num_groups)

  def by_group(values: jax.Array) -> analysis.ByGroup:
    return analysis.mean_by_group(values, people.group, num_groups)

  factors: dict[str, analysis.ByGroup] = {
    "input_norm": norms.mean_input,
    "gradient_norm": norms.mean_gradient,
    "closeness": by_group(analysis.closeness(model.apply(params, people.x))),
    "trace": found.trace,
  }
  terms = {CLIPPING: found.clipping, NOISE: found.noise}
  return _AtModel(
    terms={name: np.asarray(value.group) for name, value in terms.items()},
    factors={name: np.asarray(value.group) for name, value in factors.items()},
    of_all={name: float(value.population) for name, value in factors.items()},
    clipped=np.asarray(by_group(1.0 * (norms.gradients > private.l2_clip)).group),
    gradients=np.asarray(norms.gradients),
  )
