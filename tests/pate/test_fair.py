"""FairPATE's query phase against plain parts, and its charges."""

import functools

import jax
import numpy as np
import pytest
from scipy import stats

from jaxfair import accounting, fairness, pate
from jaxfair.checks import ArgumentError
from jaxfair.fairness import _counter, _counter_sequence
from jaxfair.pate import _aggregation, _fair

QUERIES, CLASSES, GROUPS, TEACHERS = 400, 3, 3, 50
NOISE = {"threshold": 25, "sigma_threshold": 8.0, "sigma_answer": 5.0}


@functools.cache
def queries():
  """Votes, groups and true labels."""
  rng = np.random.default_rng(0)
  groups = rng.integers(0, GROUPS, QUERIES)
  shares = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.4, 0.3, 0.3]])
  truth = np.array([rng.choice(CLASSES, p=shares[g]) for g in groups])
  right = rng.binomial(TEACHERS, rng.beta(4, 2, QUERIES))
  counts = rng.multinomial(TEACHERS - right, np.full(CLASSES, 1 / CLASSES))
  counts[np.arange(QUERIES), truth] += right
  return counts, groups, truth


def votes():
  return queries()[:2]


def ask(max_gap=0.1, min_count=10, **changes):
  counts, groups = votes()
  options = NOISE | {"key": jax.random.key(7)} | changes
  found = pate.fair_gnmax(
    counts, groups, num_groups=GROUPS, max_gap=max_gap, min_count=min_count, **options
  )
  return jax.tree.map(np.asarray, found)


def plain():
  return np.asarray(_aggregation.confident_gnmax(votes()[0], **NOISE, key=jax.random.key(7)))


@pytest.mark.slow
def test_without_a_margin_it_is_confident_gnmax():
  found = ask(max_gap=3.0)
  np.testing.assert_array_equal(found.labels, plain())
  confident = plain() != pate.NO_ANSWER
  assert 100 < confident.sum() < QUERIES
  np.testing.assert_array_equal(found.chosen, confident)
  assert found.tested.all()
  expected = np.where(confident, pate.Outcome.ANSWERED, pate.Outcome.NOT_CONFIDENT)
  np.testing.assert_array_equal(found.outcome, expected)


@pytest.mark.parametrize("min_count", [3, 10])
def test_labels_are_those_of_pate_filtered_afterwards(min_count):
  # Judging is post-processing: apart from its free refusals, FairPATE releases
  # what PATE followed by the pre-processor would.
  found = ask(min_count=min_count)
  rule = fairness.CounterRule(0.1, min_count)
  filtered = _counter_sequence.admit_in_order(
    plain(), votes()[1], rule, num_groups=GROUPS, num_classes=CLASSES
  )
  np.testing.assert_array_equal(found.labels, filtered.labels)
  np.testing.assert_array_equal(found.counters, filtered.counters)


@pytest.mark.slow
def test_an_order_asks_its_rows_alone_and_may_be_continued():
  order = np.random.default_rng(3).permutation(QUERIES)[:250]
  rho = accounting.zcdp_budget(epsilon=22.0, delta=1e-5)
  found = ask(order=order, max_rho=rho)
  # By hand: the plain labels of these rows, in this order, through the filter.
  rule = fairness.CounterRule(0.1, 10)
  filtered = _counter_sequence.admit_in_order(
    plain()[order], votes()[1][order], rule, num_groups=GROUPS, num_classes=CLASSES
  )
  asked = found.outcome[order] != pate.Outcome.NOT_ASKED
  last = int(asked.sum())
  assert 100 < last < 250  # the budget ends within the order
  assert asked[:last].all()
  np.testing.assert_array_equal(found.labels[order[:last]], filtered.labels[:last])
  others = np.setdiff1d(np.arange(QUERIES), order[:last])
  assert (found.labels[others] == pate.NO_ANSWER).all()
  assert (found.outcome[others] == pate.Outcome.NOT_ASKED).all()
  assert not found.tested[others].any()
  assert not found.chosen[others].any()
  begun = ask(order=order[:100], max_rho=rho)
  for field in ("labels", "outcome", "tested", "chosen"):
    np.testing.assert_array_equal(
      getattr(begun, field)[order[:100]], getattr(found, field)[order[:100]]
    )
  whole = ask(order=np.arange(QUERIES))
  jax.tree.map(np.testing.assert_array_equal, whole, ask())
  with pytest.raises(ArgumentError, match="different rows"):
    ask(order=[1, 2, 1])
  with pytest.raises(ArgumentError, match="order has ids"):
    ask(order=[1, QUERIES])


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["equalized_odds", "equal_opportunity", "accuracy_parity"])
def test_other_notions_filter_the_same_answers_at_the_same_price(notion):
  # Teachers are right about two groups, and no better than chance about the third.
  chance = np.random.default_rng(1).integers(0, CLASSES, QUERIES)
  truth = np.where(votes()[1] == 2, chance, queries()[2])
  found = ask(notion=notion, truth=truth, min_count=5)
  rule = fairness.CounterRule(0.1, 5, notion=notion)
  filtered = _counter_sequence.admit_in_order(
    plain(), votes()[1], rule, num_groups=GROUPS, num_classes=CLASSES, truth=truth
  )
  np.testing.assert_array_equal(found.labels, filtered.labels)
  np.testing.assert_array_equal(found.counters, filtered.counters)
  assert (found.outcome == pate.Outcome.UNFAIR).sum() > 10
  assert pate.fair_events(found) == pate.fair_events(ask())
  with pytest.raises(ArgumentError, match=f"notion='{notion}' reads the true labels of public"):
    ask(notion=notion)


def test_only_what_no_class_could_answer_is_refused_for_free():
  found = ask(min_count=3)
  free = found.outcome == pate.Outcome.REFUSED_FREE
  assert free.sum() > 10
  counters = np.zeros((GROUPS, CLASSES), np.int32)
  rule = fairness.CounterRule(0.1, 3)
  allowed = jax.jit(_counter.allowed_classes)
  for label, group, is_free in zip(found.labels, votes()[1], free, strict=True):
    assert is_free == (not np.any(allowed(counters, group, rule)))
    counters[group, label] += label >= 0
  np.testing.assert_array_equal(found.tested, ~free)
  unfair = found.outcome == pate.Outcome.UNFAIR
  assert found.chosen[unfair].all()
  assert unfair.any()
  assert not found.chosen[found.outcome == pate.Outcome.NOT_CONFIDENT].any()


@pytest.mark.slow
def test_the_argmax_over_allowed_classes_wastes_nothing():
  found = ask(choice="allowed", min_count=20)
  assert not (found.outcome == pate.Outcome.UNFAIR).any()
  answered = found.outcome == pate.Outcome.ANSWERED
  forced = answered & ~found.chosen
  assert forced.sum() > 0
  counters = np.zeros((GROUPS, CLASSES), np.int32)
  rule = fairness.CounterRule(0.1, 20)
  allowed = jax.jit(_counter.allowed_classes)
  for i, (label, group) in enumerate(zip(found.labels, votes()[1], strict=True)):
    if answered[i]:
      open_classes = np.asarray(allowed(counters, group, rule))
      assert open_classes[label]
      assert forced[i] == (open_classes.sum() == 1)
      counters[group, label] += 1
  gap = fairness.demographic_disparity(found.counters).max()
  assert gap < 0.1


@pytest.mark.slow
def test_with_everything_allowed_both_choices_take_the_largest():
  counts = np.array([[9, 1, 0], [0, 3, 7], [4, 5, 1]] * 10)
  for choice in ("any", "allowed"):
    found = pate.fair_gnmax(
      counts,
      np.zeros(30, int),
      num_groups=1,
      threshold=0,
      sigma_threshold=0.01,
      sigma_answer=0.01,
      max_gap=3.0,
      min_count=0,
      choice=choice,
      key=jax.random.key(0),
    )
    np.testing.assert_array_equal(found.labels, [0, 2, 1] * 10)


@pytest.mark.slow
def test_ties_are_ranked_fairly():
  counts = np.array([[5, 5, 0]] * 4000)
  found = pate.fair_gnmax(
    counts,
    np.zeros(4000, int),
    num_groups=1,
    threshold=0,
    sigma_threshold=0.01,
    sigma_answer=0.01,
    max_gap=3.0,
    min_count=0,
    choice="allowed",
    key=jax.random.key(0),
  )
  # 5 standard deviations of a fair coin: 1e-6.
  assert abs(found.counters[0, 0] - 2000) < 5 * np.sqrt(1000)
  assert found.counters[0, 2] == 0


def test_answers_carry_the_noise_that_is_charged():
  found = ask(max_rho=3.0)
  (event,) = pate.fair_events(found)
  assert event.rho == 3.0  # the budget, not what these answers spent of it
  (event,) = pate.fair_events(ask())
  each = 0.5 / 8.0**2 + 5.0**-2
  np.testing.assert_allclose(event.rho, len(found.labels) * each, rtol=1e-12)
  many = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), found)
  with pytest.raises(ArgumentError, match="one setting and seed at a time"):
    pate.fair_events(many)


def test_the_budget_is_never_overrun_and_is_spent():
  test, answer = (0.5 / NOISE["sigma_threshold"] ** 2, NOISE["sigma_answer"] ** -2)
  found = ask(max_rho=3.0)
  spent = found.tested.sum() * test + found.chosen.sum() * answer
  assert 3.0 - 1.01 * (test + answer) < spent <= 3.0
  stopped = found.outcome == pate.Outcome.NOT_ASKED
  first = np.argmax(stopped)
  assert stopped[first:].all()
  whole = ask()
  np.testing.assert_array_equal(found.labels[:first], whole.labels[:first])


@pytest.mark.slow
def test_one_class_an_empty_group_and_no_queries_are_no_mistakes():
  counts, groups = votes()
  options = NOISE | {"key": jax.random.key(7), "max_gap": 0.1, "min_count": 10}
  wider = pate.fair_gnmax(counts, groups, num_groups=GROUPS + 2, **options)
  np.testing.assert_array_equal(wider.labels, ask().labels)
  assert not wider.counters[GROUPS:].any()
  alone = pate.fair_gnmax(counts[:, :1], groups, num_groups=GROUPS, **options)
  kinds = {pate.Outcome.ANSWERED, pate.Outcome.NOT_CONFIDENT}
  assert set(np.asarray(alone.outcome).tolist()) == kinds
  nobody = pate.fair_gnmax(counts[:0], groups[:0], num_groups=GROUPS, **options)
  assert nobody.labels.shape == (0,)
  assert pate.fair_events(nobody) == ()


def test_the_papers_charge_is_not_sound():
  # 200 queries of votes (38, 62), of which class 1 is not allowed; a
  # neighbor has (39, 61). The observer sees which were refused.
  sigma, many, delta = 10.0, 200, 1e-5
  refused = stats.norm.cdf([24 / (sigma * np.sqrt(2)), 22 / (sigma * np.sqrt(2))])
  answered = round(many * (1 - refused[0]))
  outcome = np.full(many, pate.Outcome.UNFAIR)
  outcome[:answered] = pate.Outcome.ANSWERED
  everything = np.ones(many, bool)
  run = _fair.FairAnswers(
    np.where(outcome, -1, 0),
    outcome,
    np.array([[answered, 0]]),
    everything,
    everything,
    sigma_threshold=1e6,
    sigma_answer=sigma,
  )

  def epsilon(events):
    return accounting.composed_guarantee(
      events, delta=delta, relation=accounting.Relation.REPLACE_ONE
    ).epsilon

  claimed = epsilon(_fair.papers_unsound_events(run))
  charged = epsilon(pate.fair_events(run))
  assert claimed == pytest.approx(1.80, abs=0.03)
  assert charged == pytest.approx(10.7, abs=0.1)
  counts = np.arange(many + 1)
  here, there = (stats.binom.pmf(counts, many, p) for p in refused)
  lost = [np.maximum(p - np.exp(claimed) * q, 0).sum() for p, q in ((here, there), (there, here))]
  assert max(lost) > 1000 * delta
  sound = [np.maximum(p - np.exp(charged) * q, 0).sum() for p, q in ((here, there), (there, here))]
  assert max(sound) < delta


@pytest.mark.parametrize(
  ("changed", "told"),
  [
    ({"choice": "best"}, "choice='best' is not known; use one of any, allowed"),
    ({"max_gap": -1.0}, "max_gap=-1.0 must be 0 or above"),
    ({"guard": "none"}, "guard='none' is not known"),
    ({"disparity": "parwise"}, "did you mean pairwise"),
    ({"max_rho": np.nan}, "max_rho=nan must be 0 or above"),
  ],
)
def test_wrong_settings_are_refused(changed, told):
  with pytest.raises(ArgumentError, match=told):
    ask(**changed)
