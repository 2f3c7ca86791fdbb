"""Optimizers and schedules by name: the one table of methods and studies."""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

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


def optimizer_of(config: Any) -> optax.GradientTransformationExtraArgs:
  """The optimizer of a config: a function of the learning rate, or a transformation as it is.

  Its `update` may be told more than gradients and parameters: `l2_clip` in a private training.
  """
  made = config.optimizer
  if not isinstance(made, optax.GradientTransformation):
    made = made(config.learning_rate)
  return optax.with_extra_args_support(made)


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
