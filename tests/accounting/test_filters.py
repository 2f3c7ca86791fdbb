"""The budget holds however events are chosen after looking at releases."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxfair import accounting as acc
from jaxfair.accounting import Relation, _composition, _rdp, _truncation
from jaxfair.accounting._filters import SHARES, PrivacyFilter
from jaxfair.accounting._units import units

ADD = Relation.ADD_OR_REMOVE_ONE
SHARE = SHARES[0]


def begun(*events, epsilon=1.0, delta=1e-5, relation=ADD):
  found = PrivacyFilter(epsilon, delta, relation)
  for event in events:
    found.count(units([event], relation))
  return found


def accepts(found, *events, relation=ADD):
  return found.accepts(*(units([event], relation) for event in events))


def most(event, **budget):
  """How many of the event are accepted one by one."""
  found, count = begun(**budget), 0
  while accepts(found, event):
    found.count(units([event], ADD))
    count += 1
  return count


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 4.0, 20.0])
def test_concentrated_events_are_accepted_to_the_closed_form(epsilon):
  """rho up to the zCDP budget at what the share leaves of delta."""
  budget = acc.zcdp_budget(epsilon=epsilon, delta=1e-5 * (1 - SHARE))
  for number in (50, 1000):
    # Orders are a few percent apart, which costs less than a thousandth.
    count = most(acc.ZCdp(budget / number), epsilon=epsilon)
    assert number * 0.999 - 1 <= count <= number


def test_pure_events_add_up():
  assert most(acc.PureDp(0.1), epsilon=0.3, delta=0.0) == 3
  assert most(acc.PureDp(0.11), epsilon=0.3, delta=0.0) == 2
  assert most(acc.Laplace(4.0), epsilon=0.75, delta=0.0) == 3
  assert most(acc.ApproxDp(0.1, 1e-6), epsilon=1.0, delta=3.5e-6) == 3
  assert most(acc.PureDp(0.1), epsilon=0.3, delta=1e-5) == 3
  # Many small ones are worth the delta.
  assert most(acc.PureDp(0.01), epsilon=1.0, delta=1e-5) > 300


def test_one_event_alone_is_judged_by_the_best_analysis():
  noise = acc.gaussian_sigma(epsilon=1.0, delta=1e-5)
  exact, wasteful = acc.Gaussian(noise), acc.Gaussian(0.99 * noise)
  assert accepts(begun(), exact)
  assert not accepts(begun(), wasteful)
  assert accepts(begun(), acc.Repeated(acc.Gaussian(2 * noise), 4))
  # That was all, for what adds the divergences up needs a little more noise.
  assert not accepts(begun(exact), acc.PureDp(1e-9))
  assert not accepts(begun(), exact, acc.PureDp(1e-9))
  assert accepts(begun(exact), acc.PureDp(0.0))
  half = acc.Gaussian(math.sqrt(2) * noise * (1 + 1e-9))
  assert accepts(begun(), acc.Repeated(half, 2))
  assert not accepts(begun(), half, half)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_trainings_chosen_one_by_one_are_affordable(epsilon):
  """Of half the budget each, by loss distributions: three fit."""
  noise = acc.calibrate_dp_sgd(epsilon=epsilon / 2, delta=1e-5, sampling_rate=0.01, steps=1000)
  assert most(acc.DpSgd(noise, 0.01, 1000), epsilon=epsilon) == 3


def test_the_order_is_fixed_by_the_first_event():
  """A later event cannot change it: it may follow from what was released."""
  first = acc.ZCdp(0.001)
  found = begun(first)
  limits = found._limits
  for event in (acc.PureDp(0.05), acc.Gaussian(50.0), acc.Rdp((2.0,), (0.01,))):
    accepts(found, event)
    found.count(units([event], ADD))
    assert found._limits is limits
  last = acc.PureDp(0.5)
  assert begun(last)._limits.order != limits.order
  assert accepts(begun(first), last)
  assert accepts(begun(), first, last)


def test_deltas_of_events_have_their_own_share():
  delta, tiny = 1e-5, acc.ApproxDp(1e-6, 0.3e-7)
  found = begun(acc.ZCdp(0.001), delta=delta)
  assert found._limits.delta == pytest.approx(SHARE * delta)
  assert accepts(found, tiny, tiny, tiny)
  assert not accepts(found, tiny, tiny, tiny, tiny)
  capped = acc.DpSgd(2.0, 0.01, 10, 10_000, 160)
  own = _truncation.truncation_delta(
    dataset_size=10_000, sampling_rate=0.01, max_batch=160, steps=10
  )
  assert own > SHARE * 1e-6
  assert not accepts(begun(acc.ZCdp(1e-4), epsilon=9, delta=1e-6), capped)
  # If the first event needs more, more is put aside.
  assert begun(capped, delta=3 * own)._limits.delta == 1.5 * own
  assert most(capped, epsilon=9.0, delta=5 * own) == 2


def test_the_share_of_the_events_is_taken_off_delta():
  """The divergence that is allowed implies epsilon at what is left of it."""
  limits = begun(acc.ZCdp(0.001), epsilon=1.0, delta=1e-5)._limits
  implied = _rdp.rdp_to_epsilon([limits.divergence], [limits.order], delta=1e-5 - limits.delta)
  assert 1 - 1e-9 < implied <= 1.0


def test_what_has_no_divergence_is_accepted_alone_only():
  event, relation = acc.DpSgd(4.0, 0.01, 10), Relation.REPLACE_ONE
  budget = {"epsilon": 5.0, "relation": relation}
  assert accepts(begun(**budget), event, relation=relation)
  found = begun(event, **budget)
  assert not accepts(found, event, relation=relation)
  found = begun(acc.ZCdp(0.1), **budget)
  assert not accepts(found, event, relation=relation)
  assert accepts(found, acc.ZCdp(0.1), relation=relation)


def test_silence_is_no_first_event():
  quiet = [acc.ZCdp(0.0), acc.PureDp(0.0), acc.Composed(()), acc.Rdp((2.0, 3.0), (0.0, 1.0))]
  found = begun(*quiet)
  assert accepts(found, *quiet)
  assert accepts(found, acc.Gaussian(acc.gaussian_sigma(epsilon=1.0, delta=1e-5)))


EVENTS = st.one_of(
  st.floats(1e-4, 0.1).map(acc.ZCdp),
  st.floats(5.0, 100.0).map(acc.Gaussian),
  st.floats(5.0, 100.0).map(acc.Laplace),
  st.floats(1e-3, 0.5).map(acc.PureDp),
  st.tuples(st.floats(1e-3, 0.2), st.floats(0, 1e-6)).map(lambda pair: acc.ApproxDp(*pair)),
  st.floats(0.01, 0.2).map(lambda v: acc.Rdp((2.0, 9.0, 30.0), (v, v, 9 * v))),
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(EVENTS, min_size=1, max_size=6), st.floats(0.2, 3.0))
def test_what_is_accepted_is_within_the_budget_in_hindsight(events, epsilon):
  found, taken = begun(epsilon=epsilon), []
  for event in events:
    together = accepts(begun(epsilon=epsilon), *taken, event)
    assert together == accepts(found, event)
    if together:
      found.count(units([event], ADD))
      taken.append(event)
  if len(taken) > 1:
    spent = _composition.composed_epsilon(taken, delta=1e-5, accountant="rdp")
    assert spent <= epsilon * (1 + 1e-9)
  elif taken:
    assert _composition.composed_epsilon(taken, delta=1e-5) <= epsilon * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.02, 0.1])
def test_no_adaptive_choice_of_responses_beats_it(delta):
  """The worst strategy, by dynamic programming over all histories.

  Losses of randomized responses of epsilon a * unit are plus or minus that.
  Somebody sees the loss so far, chooses the next response or stops, and wins
  (1 - e^(epsilon - loss))+ on average: the delta of the whole.
  """
  epsilon, unit, menu = 0.6, 0.15, (1, 2)

  @functools.cache
  def accepted(first, counts, more):
    found = begun(acc.PureDp(unit * first), epsilon=epsilon, delta=delta)
    for size, count in zip(menu, counts, strict=True):
      if count > (size == first):
        event = acc.Repeated(acc.PureDp(unit * size), count - (size == first))
        found.count(units([event], ADD))
    return found.accepts(units([acc.PureDp(unit * more)], ADD))

  @functools.cache
  def worst(first, loss, counts):
    best = max(0.0, -math.expm1(epsilon - loss * unit))
    for place, size in enumerate(menu):
      if first is None or accepted(first, counts, size):
        chance = 1 / (1 + math.exp(-size * unit))
        then = tuple(np.add(counts, np.eye(len(menu), dtype=int)[place]).tolist())
        up, down = (worst(first or size, loss + sign * size, then) for sign in (1, -1))
        best = max(best, chance * up + (1 - chance) * down)
    return best

  found = worst(None, 0, (0,) * len(menu))
  assert 0.1 * delta < found <= delta
