"""Events: descriptions of what was done to private data, as small values that can be stored.

An event says what mechanism ran, not what it cost: the cost follows from the
event, the neighboring relation and an accountant. Noise multipliers of plain
mechanisms are relative to the sensitivity under the relation that is accounted
for; those of DP-SGD are relative to the clip norm, whatever the relation.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from jaxfair import checks

# Numbers of an event lie within these: squares, and sums over as many releases
# as can be counted, are then finite in float64.
SMALLEST, LARGEST = 1e-100, 1e100
MOST = 2**53
# Events inside events: reading, comparing and pricing them are recursive.
DEEPEST = 32


class Event:
  """One release, or several, as accountants see it; immutable and hashable."""

  kind: ClassVar[str]


@dataclass(frozen=True)
class Gaussian(Event):
  """Gaussian noise: noise_multiplier = sigma / L2 sensitivity."""

  noise_multiplier: float
  kind: ClassVar[str] = "gaussian"

  def __post_init__(self) -> None:
    _number(self, "noise_multiplier", low=SMALLEST)


@dataclass(frozen=True)
class Laplace(Event):
  """Laplace noise: noise_multiplier = scale / L1 sensitivity."""

  noise_multiplier: float
  kind: ClassVar[str] = "laplace"

  def __post_init__(self) -> None:
    _number(self, "noise_multiplier", low=SMALLEST)


@dataclass(frozen=True)
class DpSgd(Event):
  """DP-SGD: each step samples people by Poisson sampling, clips, sums and adds Gaussian noise.

  Attributes:
    noise_multiplier: sigma / l2_clip.
    sampling_rate: q, each person's chance to be in a batch.
    steps: number of steps.
    dataset_size: n, with max_batch only.
    max_batch: public cap; of a larger sample a uniformly random subset of
      this size is kept. None: batches of any size.
    shards: number of blocks of consecutive people that have a cap of `max_batch` each, as in a
      training over a mesh; None: one cap for everybody. Blocks may also be joined and capped
      together, if that does not raise the probability that a cap is exceeded.
    bands: number of steps b that share their noise: people are assigned to b parts at random, step
      t samples part t mod b at the rate b q, and noise is added to a weighted sum of the sums of b
      steps, with weights of norm one (`privacy._bands`). None, or 1: every step has its own noise.
  """

  noise_multiplier: float
  sampling_rate: float
  steps: int
  dataset_size: int | None = None
  max_batch: int | None = None
  shards: int | None = None
  bands: int | None = None
  kind: ClassVar[str] = "dp-sgd"

  def __post_init__(self) -> None:
    _number(self, "noise_multiplier", low=SMALLEST)
    _number(self, "sampling_rate", low=SMALLEST, high=1.0)
    _integer(self, "steps")
    both = (self.dataset_size is None) == (self.max_batch is None)
    checks.require(both, "dataset_size and max_batch go together; pass both or neither")
    if self.max_batch is not None:
      _integer(self, "dataset_size")
      _integer(self, "max_batch")
    if self.shards is not None:
      checks.require(
        self.max_batch is not None, "each shard has a cap; pass max_batch and dataset_size"
      )
      _integer(self, "shards")
    if self.bands == 1:
      object.__setattr__(self, "bands", None)
    if self.bands is not None:
      _integer(self, "bands")
      checks.require(self.shards is None, "shards and bands cannot be combined; leave one out")
      checks.require(
        self.sampling_rate * self.bands <= 1 + 1e-12,  # rounded
        f"bands={self.bands} parts of the people are too small for a sampling_rate of "
        f"{self.sampling_rate:g}; use at most {int(1 / self.sampling_rate)} bands",
      )

  @property
  def releases(self) -> tuple[float, int]:
    """Rate and number of the independent Poisson-sampled Gaussian releases that cost as much.

    (b q, ceil(steps / b)): the theorem of `privacy._bands`.
    """
    bands = self.bands or 1
    return min(1.0, self.sampling_rate * bands), -(-self.steps // bands)


@dataclass(frozen=True)
class ShuffledDpSgd(Event):
  """Epochs of disjoint batches: each person is in at most one per epoch.

  noise_multiplier = sigma / l2_clip. No amplification is claimed.
  """

  noise_multiplier: float
  epochs: int
  kind: ClassVar[str] = "shuffled-dp-sgd"

  def __post_init__(self) -> None:
    _number(self, "noise_multiplier", low=SMALLEST)
    _integer(self, "epochs")


@dataclass(frozen=True)
class RandomizedResponse(Event):
  """k-ary randomized response on one value of each person.

  The true category is kept with probability e^epsilon / (e^epsilon + k - 1).

  Attributes:
    epsilon: epsilon of one response.
    categories: k.
    count: responses about the *same* person; a whole column randomized once
      is one, however many people it holds.
  """

  epsilon: float
  categories: int
  count: int = 1
  kind: ClassVar[str] = "randomized-response"

  def __post_init__(self) -> None:
    _number(self, "epsilon", low=SMALLEST)
    _integer(self, "categories", low=2)
    _integer(self, "count")


@dataclass(frozen=True)
class ZCdp(Event):
  """Zero-concentrated DP: (a, rho a)-RDP at every order a.

  The discrete Gaussian with parameter sigma has rho = (L2 / sigma)^2 / 2.
  """

  rho: float
  kind: ClassVar[str] = "zcdp"

  def __post_init__(self) -> None:
    _number(self, "rho", low=0.0)


@dataclass(frozen=True)
class Rdp(Event):
  """(orders[i], values[i])-RDP, computed elsewhere without private data."""

  orders: tuple[float, ...]
  values: tuple[float, ...]
  kind: ClassVar[str] = "rdp"

  def __post_init__(self) -> None:
    for name in ("orders", "values"):
      numbers = tuple(_real(name, item) for item in getattr(self, name))
      object.__setattr__(self, name, numbers)
    checks.require(
      0 < len(self.orders) == len(self.values),
      f"orders has {len(self.orders)} entries and values "
      f"{len(self.values)}; pass one value per order",
    )
    checks.number("orders", self.orders, low=1.0, open_low=True, high=LARGEST)
    checks.number("values", self.values, low=0.0, high=LARGEST)
    checks.require(all(np.diff(self.orders) > 0), "orders must increase; sort them")


@dataclass(frozen=True)
class PureDp(Event):
  """Any epsilon-DP mechanism."""

  epsilon: float
  kind: ClassVar[str] = "pure-dp"

  def __post_init__(self) -> None:
    _number(self, "epsilon", low=0.0)


@dataclass(frozen=True)
class ApproxDp(Event):
  """Any (epsilon, delta)-DP mechanism."""

  epsilon: float
  delta: float
  kind: ClassVar[str] = "approx-dp"

  def __post_init__(self) -> None:
    _number(self, "epsilon", low=0.0)
    _number(self, "delta", low=0.0, high=1.0)


@dataclass(frozen=True)
class Composed(Event):
  """Several events on the same people; each may depend on the results of earlier ones."""

  events: tuple[Event, ...]
  kind: ClassVar[str] = "composed"

  def __post_init__(self) -> None:
    object.__setattr__(self, "events", tuple(self.events))
    for event in self.events:
      _event("events", event)


@dataclass(frozen=True)
class Repeated(Event):
  """The same event, count times on the same people."""

  event: Event
  count: int
  kind: ClassVar[str] = "repeated"

  def __post_init__(self) -> None:
    _event("event", self.event)
    _integer(self, "count")


@dataclass(frozen=True)
class RepeatAndSelect(Event):
  """A random number of runs; only the best one is released.

  Attributes:
    event: one run, with its own choice of the score charged.
    mean_runs: expected number of runs.
    shape: shape of the truncated negative binomial that draws the number of runs;
      1 is geometric, 0 logarithmic. None: Poisson.
  """

  event: Event
  mean_runs: float
  shape: float | None = 1.0
  kind: ClassVar[str] = "repeat-and-select"

  def __post_init__(self) -> None:
    _event("event", self.event)
    _number(self, "mean_runs", low=1.0)
    if self.shape is not None:
      _number(self, "shape", low=0.0)


def _real(name: str, value: Any) -> float:
  real = isinstance(value, int | float | np.integer | np.floating)
  try:
    finite = real and not isinstance(value, bool) and math.isfinite(value)
  except OverflowError:  # an integer of hundreds of digits
    finite = False
  checks.require(finite, f"{name}={value!r} must be a finite number")
  return float(value)


def _number(event: Event, name: str, *, low: float = 0.0, high: float = LARGEST) -> None:
  value = _real(name, getattr(event, name))
  checks.number(name, value, low=low, high=high)
  object.__setattr__(event, name, value)


def _integer(event: Event, name: str, low: int = 1) -> None:
  value = getattr(event, name)
  checks.integer(name, value, low=low, high=MOST)
  object.__setattr__(event, name, int(value))


def _event(name: str, value: Any) -> None:
  checks.require(isinstance(value, Event), f"{name} must be an Event, not {value!r}")
  checks.require(
    _depth(value) < DEEPEST, f"{name} nests events {DEEPEST} deep; list them side by side"
  )


def _depth(event: Event) -> int:
  match event:
    case Composed(events=inner):
      return 1 + max(map(_depth, inner), default=0)
    case Repeated(event=one) | RepeatAndSelect(event=one):
      return 1 + _depth(one)
  return 1
