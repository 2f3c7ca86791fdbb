"""Tuning that is charged: what one run may move, how many there are, which one is taken."""

import dataclasses
import itertools
import types

import jax
import numpy as np
import pytest

from helpers.crowds import crowd
from jaxfair import checks, methods, training
from jaxfair.accounting import Budget
from jaxfair.methods import _tuning
from jaxfair.types import Fit

SIZE = 200
NAMES = {"class_names": ("no", "yes"), "group_names": ("a", "b")}


def people(size=SIZE):
  return methods.Population(private=crowd(size, 2, apart=3.0), **NAMES)


@pytest.fixture(scope="module")
def plan():
  method = methods.get("tuned_dp_sgd")
  settings = method.settings(steps=20, batch_size=50, mean_runs=4.0, score_noise=10.0)
  return method.plan(settings, people().sizes, Budget(2.0, 1e-5))


def params(slope):
  return {"w": np.array([[-slope, slope]] * 2, np.float32), "b": np.zeros(2, np.float32)}


@pytest.mark.parametrize("slope", [-1e4, -1.0, 0.0, 1.0, 1e4])
def test_one_person_moves_a_score_by_a_hundred_points_at_most(plan, slope):
  everybody = people().private
  whole = _tuning.score(plan, params(slope), people())
  for row in range(0, SIZE, 20):
    rest = everybody.take(np.delete(np.arange(SIZE), row))
    without = _tuning.score(plan, params(slope), dataclasses.replace(people(), private=rest))
    assert 0 <= whole - without <= 100
  broken = everybody._replace(x=np.full_like(everybody.x, np.nan))
  assert _tuning.score(plan, params(1.0), dataclasses.replace(people(), private=broken)) == 0


def test_points_do_not_depend_on_how_many_people_there_are(plan):
  # The bits of a product may depend on its number of rows: in some networks each of 32 equal people
  # has another loss than each of 33, and all could lose a point because of one person more.
  shapes = set()

  def apply(params, x):
    shapes.add(x.shape)
    return plan.model.apply(params, x)

  own = types.SimpleNamespace(
    model=plan.model._replace(apply=apply), loss=plan.loss, sizes=plan.sizes
  )
  everybody = people(_tuning.BLOCK + 50)

  def score(start, stop):
    some = everybody.private.take(np.arange(start, stop))
    return _tuning.score(own, params(0.3), dataclasses.replace(everybody, private=some))

  whole, size = score(0, everybody.private.size), everybody.private.size
  assert whole == sum(score(start, min(start + 33, size)) for start in range(0, size, 33))
  assert 0 < score(0, 1) < 100
  assert len(shapes) == 1


def test_a_guess_has_half_the_points_and_certainty_all(plan):
  assert _tuning.score(plan, params(0.0), people()) == 50 * SIZE
  sure = people().private._replace(y=np.ones(SIZE, np.int32), x=np.ones((SIZE, 2), np.float32))
  own = dataclasses.replace(people(), private=sure)
  assert _tuning.score(plan, params(20.0), own) == 100 * SIZE


def test_the_longest_training_and_the_score_are_charged_for_every_run(plan):
  event = plan.event
  assert (event.mean_runs, event.shape) == (4.0, 1.0)
  run, scored = event.event.events
  assert scored.rho == pytest.approx(0.5 * (1 / 10.0) ** 2)  # 100 points over 100 x 10
  assert (run.steps, run.sampling_rate) == (20, 50 / SIZE)
  for own in plan.config.trainings:
    assert own.steps <= run.steps
    assert float(own.noise_multiplier) == run.noise_multiplier
    assert own.sampler(SIZE).rate == run.sampling_rate
    assert own.sampler(SIZE).max_batch == run.max_batch
  assert len({(own.steps, float(own.learning_rate)) for own in plan.config.trainings}) == 6


@pytest.fixture
def trainings(monkeypatch):
  """Settings of the trainings that were asked for; they train nothing."""
  asked = []

  def stand_in(model, loss, examples, config, *, key):
    asked.append(config)
    return Fit(params(float(len(asked))), None)

  monkeypatch.setattr(training, "dp_sgd", stand_in)
  return asked


@pytest.mark.slow
def test_the_number_of_runs_is_geometric_and_settings_are_uniform(plan, trainings, monkeypatch):
  monkeypatch.setattr(_tuning, "score", lambda *_: 0)
  draws, counts = 300, []
  for i in range(draws):
    before = len(trainings)
    _tuning._best(plan, people(), jax.random.key(i))
    counts.append(len(trainings) - before)
  # A geometric law of mean 4: sd sqrt(12), ones with probability 1/4. Five standard errors.
  assert abs(np.mean(counts) - 4) < 5 * np.sqrt(12 / draws)
  assert abs(np.mean(np.array(counts) == 1) - 0.25) < 5 * np.sqrt(0.25 * 0.75 / draws)
  shares = [sum(own is c for own in trainings) / len(trainings) for c in plan.config.trainings]
  assert max(abs(share - 1 / 6) for share in shares) < 5 * np.sqrt(5 / 36 / len(trainings))


def test_the_best_noisy_score_wins_and_the_noise_has_its_size(plan, trainings, monkeypatch):
  seen = []

  def noisy(values, *, sigma, source):
    del source
    seen.append((int(values[0]), sigma))
    return values

  order = itertools.cycle([300, 900, 500])
  monkeypatch.setattr(_tuning, "score", lambda *_: next(order))
  monkeypatch.setattr(_tuning.exact, "discrete_gaussian", noisy)
  key = next(k for k in map(jax.random.key, range(50)) if _runs(plan, k) == 3)
  trainings.clear()
  best = _tuning._best(plan, people(), key)
  assert best["w"][0, 1] == 2.0  # of the second training
  assert {sigma for _, sigma in seen} == {1000}


def _runs(plan, key):
  drawn = jax.random.split(key, 3)[0]
  random = np.random.default_rng(np.asarray(jax.random.key_data(drawn)))
  return random.geometric(1 / plan.config.mean_runs)


@pytest.mark.slow
@pytest.mark.parametrize("size", [60, 256])
def test_few_people_can_be_tuned_on_by_default(size):
  """The usual batch would be all of them, and its cap would overflow for certain."""
  method = methods.get("tuned_dp_sgd")
  sizes = people(size).sizes
  made = method.plan(method.settings(steps=5), sizes, Budget(2.0, 1e-4))
  assert made.settings.batch_size == size // 2
  assert made.guarantee.guarantee.epsilon <= 2.0
  given = method.plan(method.settings(steps=5, batch_size=20), sizes, Budget(2.0, 1e-4))
  assert given.settings.batch_size == 20


def test_more_bands_than_the_fewest_steps_are_refused_before_a_setting_is_drawn():
  method = methods.get("tuned_dp_sgd")
  settings = method.settings(steps=10, batch_size=20, bands=8)
  with pytest.raises(checks.ArgumentError, match=r"bands=8 .*at most 5.*no more steps to mix"):
    method.plan(settings, people().sizes, Budget(2.0, 1e-5))
