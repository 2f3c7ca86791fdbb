"""Splits events into the unit releases that an accountant handles, with their counts."""

import dataclasses
import math
from collections.abc import Iterable

from jaxfair import checks
from jaxfair.accounting import _events as ev
from jaxfair.accounting._guarantee import Relation
from jaxfair.accounting._truncation import truncation_delta

Units = tuple[tuple[ev.Event, int], ...]  # each event once, with its count


class NotCovered(checks.ArgumentError):
  """An event that an accountant cannot price under this relation."""


def units(events: Iterable[ev.Event], relation: Relation) -> Units:
  """Equal releases merged, repetitions unrolled, relations checked.

  A training of 1,000 steps is 1,000 of one unit, whether it was written down
  as one event or as ten, so both are priced by the same computation.

  Raises:
    NotCovered: for an event without a meaning under the relation.
  """
  counts: dict[ev.Event, int] = {}
  _collect(events, 1, relation, counts)
  # In a fixed order: equal collections of events are the same cache entry.
  return tuple(sorted(counts.items(), key=repr))


def overflow(counted: Units) -> float:
  """The delta that the caps on batches add, over all units.

  Also inside RepeatAndSelect: given that no run overflows, the runs are
  independent untruncated ones and their number has the same distribution with
  a smaller mean, so the cost of selection only falls.
  """
  return min(1.0, math.fsum(count * _overflow(unit) for unit, count in counted))


def _collect(
  events: Iterable[ev.Event], times: int, relation: Relation, counts: dict[ev.Event, int]
) -> None:
  for event in events:
    unit: ev.Event = event
    count = 1
    match event:
      case ev.Composed(events=inner):
        _collect(inner, times, relation, counts)
        continue
      case ev.Repeated():
        _collect([event.event], times * event.count, relation, counts)
        continue
      case ev.DpSgd():
        # The steps of one unit are one release if they share their noise.
        unit, count = dataclasses.replace(event, steps=event.bands or 1), event.releases[1]
      case ev.ShuffledDpSgd():
        unit = _shuffled_epoch(event.noise_multiplier, relation)
        count = event.epochs
      case ev.RandomizedResponse():
        _require_same_size(event, relation)
        unit, count = dataclasses.replace(event, count=1), event.count
      case ev.RepeatAndSelect():
        _collect([event.event], 1, relation, {})  # for its checks
    checks.require(isinstance(event, ev.Event), f"{event!r} is not an Event")
    counts[unit] = counts.get(unit, 0) + times * count
    checks.require(
      counts[unit] <= ev.MOST,
      f"{counts[unit]} releases of {unit.kind} are more than can be counted "
      "exactly; use fewer than 2^53",
    )


def _shuffled_epoch(sigma: float, relation: Relation) -> ev.Event:
  """One epoch of disjoint batches is one Gaussian release.

  Only one batch holds the person, the earlier ones do not depend on them and
  the later ones depend on their batch only through what was released. Adding
  a person moves everyone behind them into other batches, so there is no such
  statement for neighbors of different size.
  """
  if not relation.fixed_size:
    raise NotCovered(
      "shuffled batches have no accountant under add-or-remove-one: one more "
      "person shifts everyone's batch; use Relation.ZERO_OUT, or Poisson "
      "sampling"
    )
  return ev.Gaussian(sigma / 2 if relation.substitutes else sigma)


def _require_same_size(event: ev.Event, relation: Relation) -> None:
  if not relation.fixed_size:
    raise NotCovered(
      f"a {event.kind} event publishes one answer per person, which "
      "add-or-remove-one cannot hide; use Relation.ATTRIBUTE or REPLACE_ONE"
    )


def _overflow(unit: ev.Event) -> float:
  match unit:
    case ev.DpSgd(max_batch=int(cap), dataset_size=int(n)):
      return truncation_delta(
        dataset_size=n,
        sampling_rate=unit.sampling_rate,
        max_batch=cap,
        steps=unit.steps,
        shards=unit.shards,
      )
    case ev.RepeatAndSelect(event=inner, mean_runs=mean):
      return mean * _overflow(inner)
    case ev.Repeated(event=inner, count=count):
      return count * _overflow(inner)
    case ev.Composed(events=inner):
      return math.fsum(_overflow(event) for event in inner)
  return 0.0
