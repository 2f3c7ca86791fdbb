"""Why a group pays for the privacy of one trained model.

Reads the directory of a `train` run: what privacy cost each group there, and
what clipping and noise do to each group at the released model.
"""

import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _schema, analysis, data, fairness, models
from jaxfair.data._files import read_arrays
from jaxfair.experiments import _config as configs
from jaxfair.experiments import _runs
from jaxfair.experiments._folders import RunError
from jaxfair.experiments._measures import EVERYONE
from jaxfair.experiments._people import load_people
from jaxfair.experiments._table import Table
from jaxfair.studies import train
from jaxfair.types import Examples, Model, Params

MOST_PEOPLE = 4_000  # on whom the terms are computed; more changes little
FACTORS = ("input_norm", "gradient_norm", "closeness", "trace")
CLIPPING, NOISE = "clipping", "noise"
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


def explain_run(folder: pathlib.Path) -> NonPrivateExplanation:
  """Explains who pays in a finished `train` run with a released model.

  Args:
    folder: its run directory.

  Raises:
    RunError: if it is no such run; the message says what to do.
  """
  settings, table, card = _read(folder)
  people, _ = load_people(settings.data)
  used = table.unique("data")
  if used != [people.name]:
    raise RunError(
      f"{folder} is a run on {used[0]}, but {people.name} is what its config "
      "gives now; run it again"
    )
  model = settings.network(people.num_classes)
  params, scaler = _released(folder, model, people)
  sample = _sample(people, scaler)
  costs, apart, epsilon = _costs(table, settings, people.group_names)
  payer = max(costs, key=lambda name: costs[name].loss)
  found = _at_model(settings, model, params, sample, people.num_groups, card["noise_multiplier"])
  terms, factors, of_all = found.terms, found.factors, found.of_all
  which = people.group_names.index(payer)
  term = max(terms, key=lambda name: terms[name][which])
  behind = "gradient_norm" if term == CLIPPING else "closeness"
  factor = max((behind, "input_norm"), key=lambda name: factors[name][which] / of_all[name])
  note = ""
  if settings.private.optimizer != "sgd":
    note = (
      "The terms are those of plain descent; this model was trained with "
      f"{settings.private.optimizer}."
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
    l2_clip=settings.private.l2_clip,
    note=note,
  )


def _read(folder: pathlib.Path) -> tuple[train.Config, Table, dict[str, Any]]:
  """The settings, the rows and the released model's card."""
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
  needed = ("results.csv", "release/model.npz", "release/guarantee.json")
  for name in needed:
    if not (folder / name).is_file():
      raise RunError(
        f"{folder} has no {name}: the run is not finished; the same `jaxfair run` continues it"
      )
  path = folder / needed[2]
  card = _schema.read_json(path, dict[str, Any], remedy=AGAIN)
  noise = card.get("noise_multiplier")
  _schema.convert(float, noise, f"{path}: noise_multiplier")
  return made.settings, Table.read(folder / needed[0]), card


def _released(
  folder: pathlib.Path, model: Model, people: data.Dataset
) -> tuple[Params, data.Scaler]:
  """The released parameters and the scaler they were trained behind."""
  one = jax.ShapeDtypeStruct(people.examples.x.shape[1:], jnp.float32)
  shapes = jax.eval_shape(model.init, jax.random.key(0), one)
  leaves, form = jax.tree_util.tree_flatten_with_path(shapes)
  file = folder / "release" / "model.npz"
  saved = read_arrays(file, remedy=AGAIN)
  wanted = {jax.tree_util.keystr(path): leaf.shape for path, leaf in leaves}
  last = people.examples.x.shape[-1:]  # a scaler goes by the last axis
  parts = {f"scaler.{name}": last for name in data.Scaler._fields}
  for name, shape in (wanted | parts | {"scaler.limit": ()}).items():
    if name not in saved or saved[name].shape != shape:
      raise RunError(
        f"{file} has no array {name} of shape {shape}, so it is not the model of this run; {AGAIN}"
      )
  scaled: Any = [saved[name] for name in parts]
  params = [jnp.asarray(saved[name]) for name in wanted]
  return jax.tree.unflatten(form, params), data.Scaler(*scaled)


def _sample(people: data.Dataset, scaler: data.Scaler) -> Examples:
  size = min(MOST_PEOPLE, people.size)
  (rows,) = data.split_rows(people.size, (size,), key=jax.random.key(0))
  some = people.examples.take(rows)
  scaled = some._replace(x=scaler.apply(some.x))
  return jax.tree.map(jnp.asarray, scaled)


def _costs(
  table: Table, settings: train.Config, groups: tuple[str, ...]
) -> tuple[dict[str, Cost], fairness.Interval, float]:
  """Costs of the training nearest to the released one, by group."""
  wanted = settings.release_epsilon
  assert wanted is not None
  known = sorted(settings.epsilons, key=lambda e: abs(np.log(e / wanted)))
  rows = table.where(training=f"epsilon {known[0]:g}")
  per_seed = {name: rows.where(group=name)["loss_cost"] for name in (*groups, EVERYONE)}
  costs = {}
  for name in groups:
    found = fairness.seed_interval(per_seed[name])
    accuracy = np.nanmean(rows.where(group=name)["accuracy_cost"])
    told = (found.estimate, found.low, found.high, accuracy)
    costs[name] = Cost(*map(float, told))
  order = sorted(groups, key=lambda name: costs[name].loss)
  apart = fairness.paired_interval(per_seed[order[-1]], per_seed[order[0]])
  return costs, apart, known[0]


class _AtModel(NamedTuple):
  """Terms and factors of every group at the released model."""

  terms: dict[str, np.ndarray]
  factors: dict[str, np.ndarray]
  of_all: dict[str, float]
  clipped: np.ndarray
  gradients: np.ndarray


def _at_model(
  settings: train.Config,
  model: Model,
  params: Params,
  people: Examples,
  num_groups: int,
  noise_multiplier: float,
) -> _AtModel:
  private, loss = settings.private, models.cross_entropy
  step = analysis.StepSettings(
    learning_rate=private.learning_rate,
    l2_clip=private.l2_clip,
    noise_multiplier=noise_multiplier,
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
