"""DP-SGD with rate and steps chosen among several trainings, and the choice charged."""

import dataclasses
import functools
import math
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxfair import accounting, checks, training
from jaxfair._fields import Positive, Sweep, Within
from jaxfair.accounting import _composition, _zcdp
from jaxfair.accounting._search import smallest_noise
from jaxfair.methods._base import TUNING, PrivateMethod
from jaxfair.methods._buying import seeded_bits
from jaxfair.methods._gradient_settings import DpSgdSettings
from jaxfair.methods._gradients import DpSgd
from jaxfair.methods._method import Plan, Population, Sizes, refuse_unfit
from jaxfair.methods._recipe import fill
from jaxfair.privacy import exact
from jaxfair.training import _optimizers
from jaxfair.types import Array, Fit, Key, Model, Params, PerExampleLoss

SMALL = 256  # people; the usual batch would be all of them
POINTS = 100  # that one person adds to a score at most
BLOCK = 256  # people whose losses are computed together


class TunedSettings(DpSgdSettings):
  """Settings of a choice among trainings.

  Attributes:
    mean_runs: trainings on average; their number is random.
    rate_factors: learning rates that are tried, over `learning_rate`.
    step_factors: numbers of steps that are tried, over `steps`; at most 1.
    score_noise: standard deviation of the noise on a score, in people.
  """

  mean_runs: Annotated[float, Within(1.0, 1000.0)] = 5.0
  rate_factors: Sweep[Positive] = (0.25, 1.0, 4.0)
  step_factors: Sweep[Annotated[float, Within(0.0, 1.0, open_low=True)]] = (0.5, 1.0)
  score_noise: Annotated[float, Within(1.0, 1e6)] = 20.0

  def check(self) -> None:
    """Raises for an optimizer whose rate cannot be varied."""
    super().check()
    checks.require(
      not isinstance(self.optimizer, optax.GradientTransformation),
      "optimizer has a fixed learning rate, but tuned_dp_sgd tries several; pass a name or a "
      "function of the rate, such as optax.adamw",
    )


class Candidates(NamedTuple):
  """The settings to choose among; `config` of these plans.

  Attributes:
    trainings: settings of each training, with the same noise.
    mean_runs: how many are done on average.
    score_sigma: of the noise on a score, in points.
  """

  trainings: tuple[training.DpSgdConfig, ...]
  mean_runs: float
  score_sigma: float


class TunedDpSgd(DpSgd):
  """DP-SGD with rate and steps chosen by noisy scores, which are charged.

  A geometric number of times: draws one of the settings, trains, and scores the model on the
  private people with noise. The model with the best score is released; neither the others nor
  any score nor the number of runs is.

  Privacy:
    One run is DP-SGD followed by a noisy score, whichever setting is drawn: all have the noise
    and the sampling rate of `event`, and fewer steps are a part of more. The drawn setting does
    not depend on people, so the Renyi divergences of a run are at most those of the composition.
    The score is a sum of at most 100 points for each person, so one person added or removed moves
    it by 100, and discrete Gaussian noise of parameter sigma makes it (100 / sigma)^2 / 2-zCDP.
    Repeating an RDP mechanism a geometric number of times and releasing the best result is
    Theorem 2 of Papernot & Steinke (2022), which `accounting.RepeatAndSelect` prices. How long
    the choice took tells the number of runs, which is independent of people.
  """

  name = "tuned_dp_sgd"
  scales: frozenset[str] = frozenset()
  settings: type[DpSgdSettings] = TunedSettings
  traceable = False  # the number of runs is random
  reference = "Papernot and Steinke 2022"

  def plan(self, settings: Any, sizes: Sizes, budget: accounting.Budget | None) -> Plan:
    """Calibrates the noise for the whole choice."""
    refuse_unfit(self, settings, sizes, budget)
    assert budget is not None
    if sizes.private <= SMALL:
      # A batch of everybody fills its cap, which the price of a repetition does not cover.
      settings = fill(settings, batch_size=max(1, sizes.private // 2))
    whole = super().plan(settings, sizes, budget)
    settings, longest = whole.settings, whole.config
    score_sigma = math.ceil(POINTS * settings.score_noise)

    def event(noise: float) -> accounting.RepeatAndSelect:
      run = dataclasses.replace(longest, noise_multiplier=noise).event(sizes.private)
      rho = _zcdp.discrete_gaussian_rho(sigma=score_sigma, sensitivity=POINTS)
      return accounting.RepeatAndSelect(
        accounting.Composed((run, accounting.ZCdp(rho))), settings.mean_runs
      )

    def cost(noise: float) -> float:
      return _composition.composed_epsilon(
        [event(noise)], delta=budget.delta, relation=self.relation, accountant="rdp"
      )

    noise = smallest_noise(cost, budget.epsilon, 2 * float(longest.noise_multiplier))
    trainings = tuple(
      self._training(longest, settings, noise, rate, share)
      for rate in settings.rate_factors
      for share in settings.step_factors
    )
    for one in trainings:  # what one of them refuses is not found out by drawing it
      one.event(sizes.private)
    return self._planned(
      settings,
      sizes,
      budget,
      Candidates(trainings, settings.mean_runs, score_sigma),
      event(noise),
      f"About {settings.mean_runs:g} trainings of {len(trainings)} settings, each of at most "
      f"{settings.steps} steps with noise of {noise:.3g} times the clip bound; the best by a "
      "noisy score is released, and the cost includes the choice.",
      row_norm=whole.row_norm,
    )

  def fit(self, plan: Plan, data: Population, *, key: Key) -> Fit:
    """Chooses with randomness from the key."""
    return Fit(_best(plan, plan.bounded(data), key), None)

  # A choice that is stopped is made again, with the same key.
  release = PrivateMethod.release
  fit_many = PrivateMethod.fit_many

  def _training(
    self, longest: training.DpSgdConfig, settings: Any, noise: float, rate: float, share: float
  ) -> training.DpSgdConfig:
    steps = max(1, round(share * longest.steps))
    return dataclasses.replace(
      longest,
      learning_rate=rate * settings.learning_rate,
      steps=steps,
      noise_multiplier=noise,
      optimizer=_optimizers.chosen_optimizer(settings.optimizer, settings.schedule, steps=steps),
    )

  def _protection(self, settings: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    protected, rest = super()._protection(settings)
    return protected, tuple(what for what in rest if what != TUNING)


def _best(plan: Plan, people: Population, key: jax.Array) -> Params:
  """The parameters with the best noisy score among a geometric number of trainings."""
  config: Candidates = plan.config
  drawn, scored, trained = jax.random.split(key, 3)
  random = np.random.default_rng(np.asarray(jax.random.key_data(drawn)))
  bits = seeded_bits(scored)
  found: list[tuple[int, Params]] = []
  for run in range(int(random.geometric(1 / config.mean_runs))):
    own = config.trainings[int(random.integers(len(config.trainings)))]
    fitted = training.dp_sgd(
      plan.model, plan.loss, people.private, own, key=jax.random.fold_in(trained, run)
    )
    points = score(plan, fitted.params, people)
    noisy = exact.discrete_gaussian(np.array([points]), sigma=config.score_sigma, source=bits)
    found.append((int(noisy[0]), fitted.params))
  return max(found, key=lambda one: one[0])[1]


def score(plan: Plan, params: Params, people: Population) -> int:
  """The sum over people of 100 points, less as their loss grows to that of a guess and beyond.

  floor(100 max(0, 1 - loss / (2 log C))) for each; nothing for a record that is broken.

  People are scored in blocks of one size, the last one filled up: the last bits of a loss may
  depend on how many rows a program takes, so that one person more could move the points of many.
  """
  x, y = np.asarray(people.private.x), np.asarray(people.private.y)
  total = 0
  for start in range(0, len(x), BLOCK):
    rows = np.minimum(np.arange(start, start + BLOCK), len(x) - 1)
    points = _points(plan.model, plan.loss, params, x[rows], y[rows], plan.sizes.classes)
    total += int(np.asarray(points)[: len(x) - start].astype(np.int64).sum())
  return total


@functools.partial(jax.jit, static_argnums=(0, 1, 5))
def _points(
  model: Model, loss: PerExampleLoss, params: Params, x: Array, y: Array, classes: int
) -> jax.Array:
  """[n] points, whole numbers."""
  share = 1 - loss(model.apply(params, x), y) / (2 * math.log(classes))
  return jnp.floor(POINTS * jnp.clip(jnp.where(jnp.isfinite(share), share, 0.0), 0.0, 1.0))
