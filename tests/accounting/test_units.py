import pytest

from jaxfair import checks
from jaxfair.accounting import _events as ev
from jaxfair.accounting._guarantee import Relation
from jaxfair.accounting._truncation import truncation_delta
from jaxfair.accounting._units import NotCovered, overflow, units

ADD = Relation.ADD_OR_REMOVE_ONE


def test_one_training_or_ten_pieces_are_the_same_units():
  whole = units([ev.DpSgd(1.0, 0.1, 100)], ADD)
  pieces = units([ev.DpSgd(1.0, 0.1, 10)] * 10, ADD)
  nested = units(
    [ev.Repeated(ev.Composed((ev.DpSgd(1.0, 0.1, 20),) * 2), 2), ev.DpSgd(1.0, 0.1, 20)], ADD
  )
  assert whole == pieces == nested == ((ev.DpSgd(1.0, 0.1, 1), 100),)


def test_order_does_not_matter():
  a, b = ev.Gaussian(1.0), ev.Laplace(2.0)
  assert units([a, b, a], ADD) == units([b, a, a], ADD)


def test_responses_are_counted():
  found = units([ev.Repeated(ev.RandomizedResponse(1.0, 3, 4), 5)], Relation.ATTRIBUTE)
  assert found == ((ev.RandomizedResponse(1.0, 3), 20),)


@pytest.mark.parametrize(
  ("relation", "sigma"),
  [(Relation.ZERO_OUT, 3.0), (Relation.REPLACE_ONE, 1.5), (Relation.ATTRIBUTE, 1.5)],
)
def test_a_shuffled_epoch_is_one_gaussian(relation, sigma):
  found = units([ev.ShuffledDpSgd(3.0, 7)], relation)
  assert found == ((ev.Gaussian(sigma), 7),)


@pytest.mark.parametrize("event", [ev.ShuffledDpSgd(3.0, 7), ev.RandomizedResponse(1.0, 2)])
@pytest.mark.parametrize("wrap", [lambda e: e, lambda e: ev.RepeatAndSelect(e, 2.0)])
def test_what_has_no_meaning_under_a_relation_is_refused(event, wrap):
  with pytest.raises(NotCovered, match=r"Relation\."):
    units([wrap(event)], ADD)


def test_only_events_can_be_counted():
  with pytest.raises(checks.ArgumentError, match="not an Event"):
    units(["gaussian"], ADD)  # type: ignore[list-item]


def test_overflow_adds_up_through_every_nesting():
  once = truncation_delta(dataset_size=100, sampling_rate=0.1, max_batch=20, steps=1)
  training = ev.DpSgd(1.0, 0.1, 5, 100, 20)
  assert overflow(units([training], ADD)) == pytest.approx(5 * once)
  tuned = ev.RepeatAndSelect(
    ev.Composed((training, ev.Repeated(training, 2), ev.Gaussian(1.0))), 3.0
  )
  assert overflow(units([tuned, training], ADD)) == pytest.approx(50 * once)
  assert overflow(units([ev.DpSgd(1.0, 0.1, 5)], ADD)) == 0.0
  sure = ev.DpSgd(1.0, 1.0, 5, 100, 20)
  assert overflow(units([sure], ADD)) == 1.0
