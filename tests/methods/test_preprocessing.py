"""Preprocessing that is declared, public or bought: scales, noise, prices."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from jaxfair import accounting, data, methods
from jaxfair.accounting import Relation, _composition
from jaxfair.checks import ArgumentError
from jaxfair.data import _columns, _rules
from jaxfair.methods import _counting, _preprocessing
from jaxfair.privacy import exact

SIZE = 4000
RNG = np.random.default_rng(0)
COLUMNS = {
  "age": RNG.integers(17, 90, SIZE).astype(float),
  "year": RNG.normal(2000, 8, SIZE),
  "gain": np.where(RNG.uniform(size=SIZE) < 0.9, 0.0, RNG.uniform(0, 1e5, SIZE)),
  "job": RNG.choice(["cook", "nurse", "clerk"], SIZE, p=[0.6, 0.3, 0.1]),
  "town": np.where(np.arange(SIZE) == 7, "hamlet", RNG.choice(["a", "b"], SIZE)),
  "sex": RNG.choice(["F", "M"], SIZE),
  "hired": RNG.choice(["no", "yes"], SIZE),
}
REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_OR_REMOVE_ONE


def people(**options):
  return data.from_frame(COLUMNS, label="hired", group="sex", **options)


@pytest.fixture(scope="module")
def own():
  """People whose ranges and categories are not declared."""
  return people()


def numbers(values, width):
  """[n, width] the same column of numbers several times."""
  return np.repeat(np.asarray(values, np.float32)[:, None], width, axis=1)


def plan_of(width, noise_multiplier=5.0, relation=ADD, **options):
  columns = tuple(_columns.Numeric(f"c{i}") for i in range(width))
  rule = _rules.everyone()
  encoder = data.Encoder(columns, rule, rule)
  return _preprocessing.PreprocessingPlan(encoder, noise_multiplier, relation, **options)


def words_of(values, width=1):
  """[n, width k] one-hot features of the same words in several columns, and their encoder."""
  names, codes = np.unique(values, return_inverse=True)
  rule = _rules.everyone()
  columns = tuple(
    _columns.Categorical(f"w{i}", tuple(names.tolist()), "data") for i in range(width)
  )
  x = np.tile(np.eye(len(names), dtype=np.float32)[codes], (1, width))
  return x, data.Encoder(columns, rule, rule)


def test_declared_ranges_fill_minus_one_to_one():
  own = people(ranges={"age": (17, 90), "year": (1950, 2050), "gain": (0, 1e5)})
  made = methods.Preprocessing.declared(own.encoder)
  x = own.examples.x.copy()
  x[0, 0] = np.nan
  scaled = made.apply(x)
  np.testing.assert_allclose(scaled[1:, 0], (COLUMNS["age"][1:] - 53.5) / 36.5, atol=1e-6)
  assert scaled[0, 0] == 0
  assert np.abs(scaled).max() <= 1
  np.testing.assert_array_equal(scaled[:, 3:], own.examples.x[:, 3:])
  assert made.event is None
  assert made.assumed_public == own.encoder.assumed_public()
  with pytest.raises(ArgumentError, match=r"no range is declared for year, gain; pass ranges="):
    methods.Preprocessing.declared(people(ranges={"age": (17, 90)}).encoder)


def test_public_people_give_the_scale(own):
  made = methods.Preprocessing.public(own.encoder, own.examples.x[:100])
  np.testing.assert_array_equal(
    made.apply(own.examples.x), data.fit_scaler(own.examples.x[:100]).apply(own.examples.x)
  )
  assert made.assumed_public[-1].endswith("taken from 100 public people")


def test_bought_scales_are_near_the_true_ones(own):
  plan = methods.plan_preprocessing(own.encoder, epsilon=1.0, delta=1e-6)
  assert plan.numbers == ("age", "year", "gain")
  made = plan.buy(own.examples.x, source=exact.seeded(1))
  spread = np.nanstd(own.examples.x[:, :3], axis=0)
  off = np.abs(made.scaler.center[:3] - own.examples.x[:, :3].mean(axis=0)) / spread
  assert off.max() < 0.25
  ratio = made.scaler.factor[:3] * spread
  assert abs(ratio[0] - 1) < 0.25
  assert 0.2 < ratio[1] < 1.2  # the second grid resolves a few percent of 2^10
  assert 0.5 < ratio[2] < 4.0  # bins of the tail that few people are in are cut off
  scaled = made.apply(own.examples.x)
  assert np.isfinite(scaled).all()
  assert np.abs(scaled).max() <= 5
  assert made.encoder.feature_names == tuple(np.array(own.feature_names)[made.kept])
  assert not any("taken from the private people" in told for told in made.assumed_public)
  # What a plan announces is what the release says.
  assert plan.marked.assumed_public() == made.assumed_public
  assert {c.name for c in made.encoder.columns if c.origin == "bought"} == {
    *plan.numbers,
    *plan.categories,
  }


def test_the_bought_encoder_encodes_what_apply_makes(own):
  plan = methods.plan_preprocessing(own.encoder, epsilon=1.0, delta=1e-6)
  made = plan.buy(own.examples.x, source=exact.seeded(2))
  loaded = data.Encoder.from_record(made.encoder.to_record())
  again = made.scaler.apply(loaded.encode(COLUMNS).x)
  np.testing.assert_array_equal(again, made.apply(own.examples.x))


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("buy_categories", [False, True])
def test_the_price_stays_within_the_budget(own, relation, epsilon, buy_categories):
  plan = methods.plan_preprocessing(
    own.encoder, epsilon=epsilon, delta=1e-6, relation=relation, buy_categories=buy_categories
  )
  paid = _composition.composed_epsilon(
    [plan.event], delta=1e-6, relation=relation, accountant="rdp"
  )
  assert 0.5 * epsilon < paid <= epsilon * (1 + 1e-9)


def test_what_is_declared_is_not_bought():
  own = people(
    ranges={"age": (17, 90), "year": (1950, 2050), "gain": (0, 1e5)},
    categories={"job": ["cook", "nurse"], "town": ["a", "b"]},
  )
  plan = methods.plan_preprocessing(own.encoder, epsilon=1.0, delta=1e-6)
  assert plan.event is None
  made = plan.buy(own.examples.x)
  expected = methods.Preprocessing.declared(own.encoder)
  np.testing.assert_array_equal(made.apply(own.examples.x), expected.apply(own.examples.x))


@pytest.mark.parametrize(("relation", "moves"), [(ADD, 1), (REPLACE, 2)])
def test_rho_by_hand(relation, moves):
  plan = plan_of(3, noise_multiplier=4.0, relation=relation)
  sigma = math.ceil(16 * math.sqrt(3 * moves)) / 4
  first, second = plan.event.events
  assert first == second
  assert first.rho == pytest.approx(3 * moves / (2 * sigma**2), rel=1e-12)
  assert first.rho <= 1 / (2 * 4.0**2) * (1 + 1e-12)


@pytest.mark.parametrize(("relation", "moves"), [(ADD, 1), (REPLACE, 2)])
def test_neighbors_move_the_counts_by_no_more_than_is_charged(relation, moves, monkeypatch):
  """What the noise is added to, for many pairs of neighbors and adverse people."""
  rng = np.random.default_rng(3)
  adverse = np.array([0.0, -1e30, 1e30, np.nan, 1.0, -1.0, 5e11, np.inf, 17.5], np.float32)
  plan = plan_of(4, relation=relation)
  asked = []

  def record(value, *, sigma, source):
    del source
    asked.append((np.array(value), sigma))
    return np.zeros_like(value) + 10**6 * (np.arange(np.size(value)).reshape(np.shape(value)) < 70)

  monkeypatch.setattr(exact, "discrete_gaussian", record)
  worst = 0.0
  for _ in range(80):
    x = rng.choice(adverse, (6, 4))
    other = x[1:] if relation is ADD else np.concatenate([rng.choice(adverse, (1, 4)), x[1:]])
    released = []
    for one in (x, other):
      asked.clear()
      plan.buy(one)
      coarse, *fine = [value for value, _ in asked]
      released.append((coarse.ravel(), np.concatenate(fine)))
      assert {sigma for _, sigma in asked} == {plan._sigma(4)}
    for mine, theirs in zip(*released, strict=True):
      worst = max(worst, float(np.sum((mine - theirs) ** 2)))
  assert worst == 4 * moves


def test_the_noise_on_counts_has_the_sigma_that_is_charged(monkeypatch):
  draws = []
  draw = exact.discrete_gaussian

  def record(value, *, sigma, source):
    noisy = draw(value, sigma=sigma, source=source)
    draws.append((noisy - value).ravel())
    return noisy

  monkeypatch.setattr(exact, "discrete_gaussian", record)
  plan = plan_of(9, noise_multiplier=7.0)
  for seed in range(4):
    plan.buy(numbers([1.0, 2.0, 3.0], 9), source=exact.seeded(seed))
  noise = np.concatenate(draws)
  sigma = 21.0
  assert plan._sigma(9) == sigma
  # A sum of squares of n Gaussians: below 1e-7 on either side.
  low, high = stats.chi2.ppf([5e-8, 1 - 5e-8], noise.size)
  assert low < np.sum(noise.astype(float) ** 2) / sigma**2 < high
  # Two histograms per column: 123 magnitudes, then at least four bins.
  assert noise.size >= 4 * 9 * (123 + 4)


@pytest.mark.slow
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_a_category_of_one_person_is_released_as_rarely_as_promised(relation):
  """Three columns of 40 lone words: each person may bring a new word in each of them."""
  x, encoder = words_of([f"w{i:02d}" for i in range(40)], width=3)
  delta = 0.3
  plan = _preprocessing.PreprocessingPlan(encoder, 0.5, relation, delta)
  released = sum(plan.buy(x, source=exact.seeded(seed)).kept.size for seed in range(25))
  trials = 25 * x.shape[1]
  assert stats.binomtest(released, trials, delta / 3, alternative="greater").pvalue > 1e-7
  # The threshold is one noise tail above one person, no more: deviation by hand.
  sigma = math.ceil(4 * 0.5 * math.sqrt(3 * (2 if relation is REPLACE else 1))) / 4
  assert plan._threshold() == 1 + math.ceil(sigma * math.sqrt(2 * math.log(3 / delta)))
  assert plan.event.events[-1] == accounting.ApproxDp(0.0, 0.6 if relation is REPLACE else 0.3)


def test_words_that_nobody_has_are_never_released():
  x, encoder = words_of(["a", "b", "c"] * 500)
  x = x[x[:, 2] == 0]  # of the people who are left nobody is a "c"
  plan = _preprocessing.PreprocessingPlan(encoder, 20.0, ADD, 0.99)
  for seed in range(20):
    made = plan.buy(x, source=exact.seeded(seed))
    assert made.encoder.columns[0].values == ("a", "b")
    assert made.encoder.columns[0].origin == "bought"


def test_few_people_still_give_a_finite_scale():
  for values in ([1.0], [np.nan], [np.inf, -np.inf], []):
    made = plan_of(2, 50.0).buy(numbers(values, 2), source=exact.seeded(4))
    assert np.isfinite(made.scaler.center).all()
    assert (made.scaler.factor > 0).all()


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"noise_multiplier": 0.0}, "noise_multiplier=0.0 must be above 0"),
    ({"categories_delta": 1.0}, "categories_delta=1.0 must be in"),
  ],
)
def test_unusable_plans_are_refused(change, message):
  with pytest.raises(ArgumentError, match=message):
    dataclasses.replace(plan_of(1), **change)
  with pytest.raises(ArgumentError, match=r"x has shape \(3, 5\), and the encoder makes 1"):
    plan_of(1).buy(np.zeros((3, 5)))


def test_histogram_agrees_with_numpy():
  values = np.array([-3.0, 0.0, 0.5, 1.0, np.nan, 7.0, np.inf])
  edges = np.array([0.0, 1.0, 2.0])
  expected, _ = np.histogram([*values[:4].tolist(), 7.0], [-np.inf, 0.0, 1.0, 2.0, np.inf])
  np.testing.assert_array_equal(_counting.histogram(values, edges), expected)


class OnDisk:
  """People who are read by their rows."""

  def __init__(self, examples):
    self.examples, self.size, self.asked = examples, examples.size, []

  def take(self, rows):
    self.asked.append(len(rows))
    return self.examples.take(rows)

  def fingerprint(self):
    return "people"


@pytest.mark.parametrize("rows", [1, 7, 1000, 10**6])
def test_people_on_disk_buy_the_same_bits_in_little_memory(own, rows, monkeypatch):
  x = own.examples.x.copy()
  x[:9, 1] = [np.nan, np.inf, -np.inf, 0.0, -1e30, 1e30, 5e11, 1.0, -1.0]
  few = own.examples._replace(x=x).take(np.arange(1500))
  plan = methods.plan_preprocessing(own.encoder, epsilon=1.0, delta=1e-6)
  assert plan.categories == ("job", "town")
  monkeypatch.setattr(_counting, "BLOCK", rows * x[:1].nbytes)
  source = OnDisk(few)
  streamed = plan.buy(source, source=exact.seeded(5))
  whole = plan.buy(few.x, source=exact.seeded(5))
  for one, other in zip(streamed.scaler, whole.scaler, strict=True):
    np.testing.assert_array_equal(one, other)
  np.testing.assert_array_equal(streamed.kept, whole.kept)
  assert streamed.encoder == whole.encoder
  assert streamed.event == whole.event
  assert max(source.asked) == min(rows, 1500)
  assert sum(source.asked) == 2 * (1500 + 1)  # two passes, each with a look at the first person
