"""First-order attacks: FGSM, R+FGSM and PGD.

      x <- clip(project(x + share epsilon steepest(gradient)), input range)

An attack remembers the best input it has seen: one that is predicted wrongly
before one that is not, then one with the larger loss. PGD starts at the point
FGSM ends at, so at equal epsilon no example survives PGD that FGSM breaks.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.robustness._norm_balls import LINF, Ball, beside, choose
from jaxfair.types import Array, Features, Key, Labels, Model, Number, Params, PerExampleLoss

Judge = Callable[[Any], tuple[jax.Array, jax.Array]]  # x -> losses, wrong
Start = Callable[[Any, jax.Array, Ball, Any], jax.Array]

# Less than this share of the declared range in use: another scale is meant.
_NARROW = 0.01


@dataclasses.dataclass(frozen=True)
class Attack:
  """An attack; `fgsm`, `rfgsm` and `pgd` make the usual ones.

  Two that are equal share one compiled program.

  Attributes:
    name: name for tables and figures.
    ball: which pushes are allowed.
    steps: number of gradient steps.
    step_share: length of a step, as a share of epsilon.
    start: `(gradients at x, key, ball, signs or shape) -> push` of size 1.
    start_share: size of the first push, as a share of epsilon.
    input_range: least and greatest value of an input, e.g. (0, 1) for pixels.
    keep_best: returns the best input on the way, the clean one included; or
      else the last one, as other libraries do.
  """

  name: str
  ball: Ball
  steps: int
  step_share: float
  start: Start
  start_share: float
  input_range: tuple[float, float]
  keep_best: bool = True

  def __post_init__(self) -> None:
    checks.integer("steps", self.steps, low=0)
    checks.positive("step_share", self.step_share)
    checks.number("start_share", self.start_share, low=0.0, high=1.0)
    checks.number("input_range", self.input_range)
    checks.require(
      len(self.input_range) == 2 and self.input_range[0] < self.input_range[1],
      f"input_range={self.input_range} must be (least, greatest)",
    )

  def check(self, x: Features) -> None:
    """Raises if inputs have another range than the declared one."""
    check_range(x, self.input_range)

  def perturb(self, judge: Judge, x: Features, *, epsilon: Number, key: Key) -> jax.Array:
    """Pushes a batch; pure, unrolled, for use inside a training step.

    Args:
      judge: `x -> ([n] losses, [n] whether predicted wrongly)`.
      x: [n, ...] inputs within the declared range.
      epsilon: size of the pushes; 0 returns x.
      key: for a random start; used once.
    """
    state = self.begin(judge, x, epsilon, key)
    for _ in range(self.steps_left):
      state = self.advance(judge, state, x, epsilon)
    return self.end(judge, state).x

  def begin(self, judge: Judge, x: Features, epsilon: Number, key: Key) -> "State":
    """The first push, with the clean input as the best so far.

    Its gradient is that of the clean input, whatever epsilon is. An attack that
    starts at the input takes its first step here: one gradient for all.
    """
    (losses, wrong), gradient = judged(judge, x)
    if self._starts_with_a_step:
      moved = self.pushed(gradient, x, x, epsilon)
    else:
      push = self.start(gradient, key, self.ball, x)
      moved = self._inside(x, self.start_share * epsilon * push, epsilon)
    return State(moved, Best(x, losses, wrong))

  def advance(self, judge: Judge, state: "State", x: Features, epsilon: Number) -> "State":
    """One gradient step."""
    (losses, wrong), gradient = judged(judge, state.x)
    best = state.best
    if self.keep_best:
      best = best.or_better(Best(state.x, losses, wrong))
    return State(self.pushed(gradient, state.x, x, epsilon), best)

  def pushed(self, gradient: Array, at: Array, x: Features, epsilon: Number) -> jax.Array:
    """Where one step leads from `at`, around the clean inputs x.

    Epsilon is one number, or one for each row.
    """
    length = self.step_share * beside(epsilon, x)
    step = length * self.ball.steepest(gradient)
    return self._inside(x, at - x + step, epsilon)

  def end(self, judge: Judge, state: "State") -> "Best":
    """Looks at the last input, and chooses."""
    last = Best(state.x, *judge(state.x))
    return state.best.or_better(last) if self.keep_best else last

  @property
  def steps_left(self) -> int:
    """How many steps follow `begin`."""
    return self.steps - self._starts_with_a_step

  @property
  def _starts_with_a_step(self) -> bool:
    return self.start_share == 0 and self.steps > 0

  def _inside(self, x: Features, push: Array, epsilon: Number) -> jax.Array:
    # Both x and the range's ends are inside: clipping shortens every push.
    return jnp.clip(x + self.ball.project(push, epsilon), *self.input_range)


def fgsm(ball: Ball = LINF, *, input_range: tuple[float, float]) -> Attack:
  """One full step along the sign of the gradient (FGM in other norms).

  Reference:
    Goodfellow, Shlens and Szegedy 2015.
  """
  return Attack("FGSM", ball, 1, 1.0, from_input, 0.0, input_range)


def rfgsm(
  *,
  input_range: tuple[float, float],
  random_share: float = 0.5,
  step_share: float = 0.5,
  steps: int = 1,
) -> Attack:
  """R+FGSM: a random-sign perturbation, then steps along the sign of the gradient.

  x + random_share epsilon sign(N(0, I)), then step_share epsilon sign(grad)

  Args:
    input_range: least and greatest value of an input.
    random_share: alpha / epsilon.
    step_share: length of a step over epsilon; 1 - random_share in the paper.
    steps: one in the paper; libraries take more.

  Reference:
    Tramer et al. 2018, section 4.
  """
  return Attack("RFGSM", LINF, steps, step_share, from_signs, random_share, input_range)


def pgd(
  ball: Ball = LINF, *, input_range: tuple[float, float], steps: int = 10, step_share: float = 0.25
) -> Attack:
  """Projected gradient ascent that starts where FGSM ends.

  Args:
    ball: LINF or L2.
    input_range: least and greatest value of an input.
    steps: after the first, full one.
    step_share: length of a step over epsilon.

  Reference:
    Madry et al. 2018, who start at random.
  """
  return Attack("PGD", ball, steps, step_share, from_step, 1.0, input_range)


def from_input(gradient: Array, key: Key, ball: Ball, x: Features) -> jax.Array:
  """Starts at the clean input."""
  del gradient, key, ball
  return jnp.zeros_like(x)


def from_step(gradient: Array, key: Key, ball: Ball, x: Features) -> jax.Array:
  """Starts with a full step along the gradient."""
  del key, x
  return ball.steepest(gradient)


def from_signs(gradient: Array, key: Key, ball: Ball, x: Features) -> jax.Array:
  """Starts at a random corner of the cube."""
  del gradient, ball
  return jax.random.rademacher(key, x.shape, x.dtype)


def check_range(x: Features, input_range: tuple[float, float]) -> None:
  """Raises if inputs were scaled to another range than the declared one."""
  low, high = input_range
  if not checks.concrete(x):
    return
  checks.finite("x", x)
  least, most = float(np.min(x)), float(np.max(x))
  told = f"x lies in [{least:.4g}, {most:.4g}]"
  remedy = (
    "epsilon and clipping would mean something else; declare the range that "
    "the model was trained with, or scale x to it"
  )
  checks.require(
    low <= least and most <= high,
    f"{told}, outside the declared input_range=({low:g}, {high:g}): {remedy}",
  )
  checks.require(
    len(x) < 2 or most - least > _NARROW * (high - low),
    f"{told}, less than 1% of the declared input_range=({low:g}, {high:g}): {remedy}",
  )


def judge_of(
  model: Model, loss: PerExampleLoss, params: Params, y: Labels, *, shape: tuple[int, ...]
) -> Judge:
  """The losses of inputs, and which of them are misclassified."""

  def judge(rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    logits = model.apply(params, rows.reshape(-1, *shape))
    return loss(logits, y), jnp.argmax(logits, axis=-1) != y

  return judge


class Best(NamedTuple):
  """The best input of every row so far."""

  x: Any
  loss: jax.Array
  wrong: jax.Array

  def or_better(self, other: "Best") -> "Best":
    """For each row, the other if it is wrong and this is not, or loses more."""
    higher = other.loss > self.loss
    better = jnp.where(other.wrong == self.wrong, higher, other.wrong)
    return jax.tree.map(lambda a, b: choose(better, a, b), other, self)


class State(NamedTuple):
  """Where an attack is, and the best it has seen."""

  x: jax.Array
  best: Best


def judged(judge: Judge, x: Features) -> tuple[tuple[Any, Any], jax.Array]:
  """Losses, who is wrong, and each row's gradient of its own loss."""

  def total(x: Features) -> tuple[jax.Array, Any]:
    losses, wrong = judge(x)
    return jnp.sum(losses), (losses, wrong)

  gradient, judged = jax.grad(total, has_aux=True)(x)
  return judged, jnp.where(jnp.isfinite(gradient), gradient, 0.0)
