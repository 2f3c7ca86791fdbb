"""Unfairness against epsilon in learning and in decisions, beside predicted slopes (chapter 8).

One table has the gap of excess risk after output perturbation and after DP-SGD, and alpha of an
allotment by noisy counts. Each is predicted by half the noise's variance times a difference of
Hessian traces, so that slopes of log unfairness by log epsilon can be compared.
"""

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxfair import analysis, decisions, training
from jaxfair import experiments as ex
from jaxfair.decisions import _curvature
from jaxfair.experiments import Positive, _claims, _statistics, _study
from jaxfair.studies.decisions.places import Places, load_districts
from jaxfair.studies.dp_erm import common, networks, output

OUTPUT, SGD, ALLOTMENT = "output perturbation", "DP-SGD", "allotment"


class Config(output.Config, networks.NetworkConfig):
  """Settings; `seeds` and `epsilons` are those of output perturbation."""

  sgd_seeds: ex.Count = 20
  sgd_epsilons: ex.Sweep[Positive] = (0.25, 0.5, 1.0, 2.0, 4.0)
  places: Places = Places(name="saipe", state="New York")  # whose counts share the money
  place_seeds: ex.Count = 6
  place_epsilons: ex.Sweep[Positive] = (0.001, 0.01, 0.1)
  draws: ex.Count = 2000  # of the noise on the counts, per seed


def cells(config: Config) -> list[_study.Cell]:
  """Both ways to train on every data set, and the allotment."""
  trained: list[_study.Cell] = [
    {"kind": kind, "data": name, "network": network}
    for kind, network in ((OUTPUT, "logistic"), (SGD, "tanh network"))
    for name in config.sets
  ]
  return [*trained, {"kind": ALLOTMENT, "data": config.places.name, "network": "none"}]


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All epsilons and seeds of one mechanism: what a group or district differs by, and predicted."""
  if cell["kind"] == ALLOTMENT:
    return _allotment(config, cell, context)
  sample = common.draw(config, cell, context)
  if cell["kind"] == SGD:
    return _dp_sgd(config, cell, context, sample)
  found = output.perturb(config, sample, cell, key=context.key)
  shares = np.bincount(sample.people.group, minlength=sample.num_groups) / sample.people.size
  risks = found["predicted"].reshape(-1, sample.num_groups)
  apart = risks - (risks @ shares)[:, None]
  return found.plus(
    deviation=found["excess_risk"] - found["excess_risk_of_all"], predicted=apart.ravel()
  )


def _dp_sgd(
  config: Config, cell: _study.Cell, context: _study.Context, sample: common.Sample
) -> ex.Table:
  """Predicted by the noise terms of all steps (Theorem 3.2), with Hessians at the plain optimum."""
  used, size = config.training, sample.people.size
  made = networks.set_up(dataclasses.replace(config, seeds=config.sgd_seeds), cell, context, sample)
  budgets = [{"epsilon": epsilon, "delta": config.delta} for epsilon in config.sgd_epsilons]
  own = [training.calibrate(used.private(), size, **each).noise_multiplier for each in budgets]

  def change(settings: training.DpSgdConfig, value: Any) -> training.DpSgdConfig:
    return dataclasses.replace(settings, noise_multiplier=value)

  losses, accuracy = made.train(
    lambda params, people, key: made.losses(params, people), own, change
  )
  over = jax.tree.map(lambda leaf: leaf[:, :, -1], made.excess(losses))
  given: Any = (made.model, common.LOSS, made.optimum, sample.people)
  key_trace = jax.random.fold_in(context.key, 2)
  traces = analysis.hessian_trace(*given, num_groups=sample.num_groups, key=key_trace).traces
  moved = used.learning_rate * used.l2_clip * np.asarray(own, float) / used.batch_size
  apart = np.asarray(traces.group) - float(traces.population)
  shape = over["excess_risk"].shape
  half = 0.5 * used.steps * moved[:, None, None] ** 2
  values = {
    **over,
    networks.PRIVATE: accuracy[:, :, -1],
    "deviation": over["excess_risk"] - over["excess_risk_of_all"][..., None],
    "predicted": np.broadcast_to(half * apart, shape),
  }
  axes = {"epsilon": config.sgd_epsilons, "seed": range(config.sgd_seeds)}
  return sample.rows(made.cell, axes, values)


def _allotment(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """alpha of an allotment by noisy counts, without post-processing."""
  places = load_districts(config.places)
  context.say(places.note)
  problem = decisions.allotment(places.weights)
  trace = _curvature.allotment_trace(places.counts, weights=places.weights)
  rows = []
  for epsilon in config.place_epsilons:
    release = decisions.LaplaceRelease.for_epsilon(epsilon)
    predicted = np.ptp(_curvature.second_order_bias(trace, variance=release.variance))
    for seed in range(config.place_seeds):
      key = jax.random.fold_in(jax.random.fold_in(context.key, seed), int(1e6 * epsilon))
      found = decisions.simulate(
        problem, places.counts, release=release, draws=config.draws, key=key
      )
      told = {"epsilon": epsilon, "seed": seed, "group": "all districts"}
      rows.append({**cell, **told, "deviation": found.alpha, "predicted": float(predicted)})
  return ex.Table.from_rows(rows)


def _worst(labels: list[Any], values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """The epsilons in order, and [epsilons, draws] the largest deviation of a group at each."""
  epsilons = np.array([label[2] for label in labels])
  found = [np.abs(values[epsilons == one]).max(axis=0) for one in np.unique(epsilons)]
  return np.unique(epsilons), np.array(found)


def _slope(labels: list[Any], values: np.ndarray) -> np.ndarray:
  """[draws] least-squares slopes of log unfairness by log epsilon."""
  epsilons, worst = _worst(labels, values)
  if len(epsilons) < 2:
    raise _claims.CannotTellError("fewer than two epsilons")
  x = np.log(epsilons) - np.log(epsilons).mean()
  found: np.ndarray = x @ np.log(worst) / (x @ x)
  return found


def _points(told: str, function: Any) -> _claims.Statistic:
  return _statistics.of_points(
    told,
    function,
    values=("deviation", "predicted"),
    points=("kind", "data", "epsilon", "group"),
    within=("kind", "data"),
  )


SLOPES = _points(
  "slope of log unfairness by log epsilon minus the predicted slope",
  lambda labels, found, predicted: _slope(labels, found) - _slope(labels, predicted),
)
LEVEL = _points(
  "unfairness over the predicted one",
  lambda labels, found, predicted: (_worst(labels, found)[1] / _worst(labels, predicted)[1])[-1],
)


def thesis_range(values: Any) -> tuple[Any, ...]:
  """The epsilons that the thesis has for output perturbation: up to 0.5."""
  return tuple(value for value in values if value <= 0.5)


def largest_two(values: Any) -> tuple[Any, ...]:
  """The two largest epsilons."""
  return tuple(sorted(values)[-2:])


STUDY = ex.Study(
  name="dp_erm.slopes",
  summary="How fast does unfairness fall with epsilon, in learning and in decisions?",
  config=Config,
  people=common.people,
  repeats_reference=True,
  cells=cells,
  run=run,
  notes=lambda config: [
    "Unfairness is the largest |R_a - R| of a group after output perturbation (logistic "
    "regression) and DP-SGD (tanh network), and the largest minus the smallest bias of a district "
    "in the allotment. It is predicted from Hessian traces at the optimum without noise, and at "
    "the true counts: none of these numbers may be released.",
    *networks.training_notes(config),
    common.SCALING_NOTE,
  ],
  claims={
    "output perturbation: The gap falls with epsilon as half the noise's variance times the "
    "difference of traces does, over the thesis's epsilons: slopes agree to 0.1 on every data set "
    "[Thm. 3.1, approximation; Chap. 8, item 1]": SLOPES.between(-0.1, 0.1)
    .in_each("data")
    .at(kind=OUTPUT, epsilon=thesis_range),
    "output perturbation, large epsilon: Between the two largest epsilons slopes agree to 0.1 on "
    "every data set": SLOPES.between(-0.1, 0.1)
    .in_each("data")
    .at(kind=OUTPUT, epsilon=largest_two),
    "output perturbation, level: At the largest epsilon the gap is the predicted one to 10% on "
    "every data set": LEVEL.between(0.9, 1.1).in_each("data").at(kind=OUTPUT, epsilon=max),
    "allotment: Alpha falls with epsilon as the second-order bias does, with a slope of -2 to "
    "0.1": SLOPES.at(kind=ALLOTMENT).between(-0.1, 0.1),
    "allotment, level: At the largest epsilon alpha is the predicted one to 10%": LEVEL.at(
      kind=ALLOTMENT, epsilon=max
    ).between(0.9, 1.1),
    "DP-SGD: The gap falls less steeply than the noise's variance, because clipping does not "
    "depend on epsilon, on every data set": (SLOPES > 0).in_each("data").at(kind=SGD),
  },
  figures=(
    ex.lines(
      "unfairness: Unfairness against epsilon",
      "deviation ~ epsilon, group | panel",
      "What a group or the districts differ by; mean over seeds with its 95% interval.",
      log="xy",
    ),
    ex.lines(
      "predicted: Predicted unfairness against epsilon",
      "predicted ~ epsilon, group | panel",
      "Half the noise's variance times the difference of Hessian traces.",
      log="xy",
    ),
  ),
  derive=lambda table: table.plus(panel=[f"{row['data']}, {row['kind']}" for row in table.rows()]),
  summaries=(ex.summary("By epsilon", "deviation, predicted ~ kind, data, epsilon, group"),),
)
