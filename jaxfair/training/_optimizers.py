"""Optimizers: your own optax objects, and the one table of names for methods and studies."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias

import jax.numpy as jnp
import optax

from jaxfair import checks
from jaxfair.types import Number

# From a learning rate, which may be traced, to a transformation of gradients; or one as it is.
Optimizer: TypeAlias = Callable[[Any], optax.GradientTransformation] | optax.GradientTransformation
OptimizerName: TypeAlias = Literal["sgd", "momentum", "adam"]
ScheduleName: TypeAlias = Literal["constant", "linear", "cosine"]


def _momentum(learning_rate: Number) -> optax.GradientTransformation:
  """SGD whose steps add up: 0.9 times the last one, plus the gradient."""
  return optax.sgd(learning_rate, momentum=0.9)


OPTIMIZERS: Mapping[OptimizerName, Callable[[Any], optax.GradientTransformation]] = (
  MappingProxyType({"sgd": optax.sgd, "momentum": _momentum, "adam": optax.adam})
)
# The share of the learning rate that is left when a share of the steps is done.
SCHEDULES: Mapping[ScheduleName, Callable[[Any], Any]] = MappingProxyType(
  {
    "constant": jnp.ones_like,
    "linear": lambda done: 1 - done,
    "cosine": lambda done: 0.5 * (1 + jnp.cos(jnp.pi * done)),
  }
)


@dataclasses.dataclass(frozen=True)
class NameOrOptimizer:
  """What `optimizer` may be in the settings of a method: a name, or an `Optimizer`."""

  def check(self, name: str, value: object) -> None:
    """Raises for anything else."""
    if isinstance(value, str):
      checks.one_of(name, value, tuple(OPTIMIZERS))
    else:
      _check_kind(name, value)


OptimizerChoice = Annotated[Any, NameOrOptimizer()]


def check_optimizer(config: Any) -> None:
  """Raises, before any work, for a config's learning rate and optimizer that do not go together."""
  checks.positive("learning_rate", config.learning_rate)
  _check_kind("optimizer", config.optimizer)
  checks.require(
    not (
      isinstance(config.optimizer, optax.GradientTransformation) and jnp.ndim(config.learning_rate)
    ),
    "learning_rate is swept, but optimizer is an optax object with a fixed rate; pass a "
    "function of the rate, such as optimizer=optax.adamw",
  )


def optimizer_of(config: Any) -> optax.GradientTransformationExtraArgs:
  """The optimizer of a config: a function of the learning rate, or a transformation as it is.

  Its `update` may be told more than gradients and parameters: `l2_clip` in a private training.
  """
  made = config.optimizer
  if not isinstance(made, optax.GradientTransformation):
    made = made(config.learning_rate)
    checks.require(
      isinstance(made, optax.GradientTransformation),
      f"optimizer(learning_rate) returned {type(made).__name__}, which is not an optax optimizer; "
      "pass one such as optax.adamw, or optax.adamw(schedule)",
    )
  return optax.with_extra_args_support(made)


def chosen_optimizer(
  choice: OptimizerName | Optimizer, schedule: ScheduleName, *, steps: int
) -> Optimizer:
  """The optimizer of a method's settings: `named_optimizer` of a name; your own as it is."""
  if isinstance(choice, str):
    return named_optimizer(choice, schedule, steps=steps)
  checks.require(
    schedule == "constant",
    f"schedule={schedule!r} applies to optimizers by name; put the schedule into your "
    "optimizer, such as "
    "optax.adamw(optax.cosine_decay_schedule(0.1, steps))",
  )
  return choice


@functools.cache  # equal names give one object, so that programs are compiled once
def named_optimizer(
  name: OptimizerName, schedule: ScheduleName = "constant", *, steps: int | None = None
) -> Optimizer:
  """The optimizer with this name, with a learning-rate schedule.

      optimizer = training.named_optimizer("momentum", "cosine", steps=300)
      config = training.DpSgdConfig(learning_rate=0.5, steps=300, optimizer=optimizer)

  Args:
    name: "sgd", "momentum" (SGD with momentum 0.9) or "adam".
    schedule: "constant", or "linear" or "cosine": from the learning rate to 0.
    steps: number of steps of the training; needed unless the schedule is constant.

  Returns:
    `learning_rate -> optax.GradientTransformation`, for any trainer's config.

  Privacy:
    A function of released gradients and public numbers; it costs no privacy.
  """
  checks.one_of("name", name, tuple(OPTIMIZERS))
  checks.one_of("schedule", schedule, tuple(SCHEDULES))
  optimizer = OPTIMIZERS[name]
  if schedule == "constant":
    return optimizer
  checks.integer("steps", steps, low=1)
  assert steps is not None
  share = SCHEDULES[schedule]

  def scheduled(learning_rate: Number) -> optax.GradientTransformation:
    return optimizer(lambda count: learning_rate * share(jnp.minimum(count / steps, 1.0)))

  return scheduled


def _check_kind(name: str, value: object) -> None:
  checks.require(
    isinstance(value, optax.GradientTransformation) or callable(value),
    f"{name}={checks.shown(value)} is not an optimizer; pass an optax object such as "
    "optax.adamw(0.01), a function of the learning rate such as optax.adamw, or "
    "training.named_optimizer(name)",
  )
