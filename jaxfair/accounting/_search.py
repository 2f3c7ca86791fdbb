"""Searches for the noise, or the number of steps, that a budget allows.

Each evaluation of the cost may take a second, so the search makes few of them.
"""

import math
from collections.abc import Callable

from jaxfair import checks
from jaxfair.accounting._guarantee import round_up

MIN_NOISE = 0.02
MAX_NOISE = 1e6
MAX_STEPS = 10**8
SLACK = 1e-4
DIGITS = 6


def smallest_noise(cost: Callable[[float], float], target: float, start: float) -> float:
  """A noise with cost in [(1 - SLACK) target, target], of six digits.

  Newton's steps on the logarithms with secant slopes, inside a bracket.

  Args:
    cost: falls with the noise; infinite where it is not known.
    target: what it may come to.
    start: a first guess.

  Returns:
    A noise whose cost was looked at and is within the target. Where the cost
    jumps over the range above, the smallest such noise to six digits.
  """
  low, high = 0.0, math.inf  # costs too much; is within the target
  noise, slope = round_up(start, DIGITS), -1.5
  last: tuple[float, float] | None = None
  bracketed = 0
  for look in range(200):
    x, y = math.log(noise), _log_ratio(cost(noise), target)
    if -SLACK <= y <= 0 or (y <= 0 and noise <= MIN_NOISE):
      return noise
    low, high = (low, noise) if y <= 0 else (noise, high)
    if low >= MAX_NOISE:
      break
    if last is not None and math.isfinite(y - last[1]):
      slope = min(-0.2, max(-20.0, (y - last[1]) / (x - last[0])))
    last = (x, y)
    step = -(y + SLACK / 2) / slope
    if low > 0 and high < math.inf:
      bracketed += 1
      guess = math.exp(x + step) if abs(step) < 1 else 0.0
      if not low < guess < high or bracketed > 5:
        guess = math.sqrt(low * high)
    else:  # at a growing pace, lest a flat cost is crept along
      pace = min(1.0, SLACK * 4.0 ** (look - 2))
      guess = noise * math.exp(math.copysign(min(1.0, max(abs(step), pace)), step))
    noise = round_up(max(MIN_NOISE, min(guess, MAX_NOISE)), DIGITS)
    if noise in (low, high):  # six digits do not tell them apart
      return high
  raise checks.ArgumentError(
    f"no noise_multiplier up to {MAX_NOISE:g} reaches epsilon={target:g}; "
    "raise epsilon or delta, or try accountant='rdp'"
  )


def most_steps(cost: Callable[[int], float], target: float, start: int) -> int:
  """The largest number of steps with cost <= target, 0 if 1 is too many.

  Args:
    cost: rises with the number of steps; infinite where it is not known.
    target: what it may come to.
    start: a first guess; strides from it double until they overshoot.
  """
  low, high = 0, MAX_STEPS + 1  # is within the target; costs too much
  at, stride = max(1, start), 1
  while high - low > 1:
    if cost(at) <= target:
      low = at
    else:
      high = at
    if high > MAX_STEPS:
      at = min(low + stride, MAX_STEPS)
    elif low == 0:
      at = max(high - stride, 1)
    else:
      at = (low + high) // 2
    stride *= 2
  return low


def _log_ratio(cost: float, target: float) -> float:
  if cost <= 0:
    return -math.inf
  return math.log(cost / target)
