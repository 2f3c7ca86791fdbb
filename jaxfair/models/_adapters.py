"""Bring your own network: flax.linen and haiku modules as `Model(init, apply)`.

Only parameters may persist between calls, and nothing may be random: with batch
statistics one person would affect another's gradient, and with dropout two
evaluations of one model would differ.
"""

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jaxfair import checks
from jaxfair.models._adapter_errors import (
  NO_RANDOMNESS,
  NO_STATE,
  batch_of_one,
  first_line,
  library_of,
  require_kind,
)
from jaxfair.types import Array, Key, Model, Params

if TYPE_CHECKING:
  from flax import linen as nn


def from_flax(module: "nn.Module", **call_kwargs: Any) -> Model:
  """Wraps a flax.linen module that maps a batch to logits as a model.

  Args:
    module: an unbound `flax.linen.Module`; `module(x_batch)` gives logits.
    **call_kwargs: passed on every call, such as `deterministic=True`.

  Returns:
    A model; equal modules (flax compares them by their fields) give the same
    object, so that a program compiled for one serves the other.

  Raises:
    ArgumentError: from `init`, when the module has collections other than
      "params" or is random.
  """
  require_kind("module", module, "flax.linen", "pass an instance of one, such as nn.Dense(2)")
  named = tuple(sorted(call_kwargs.items()))
  try:
    hash((module, named))
  except TypeError:  # a field that cannot be hashed: nothing to cache by
    return _from_flax.__wrapped__(module, named)
  return _from_flax(module, named)


def from_haiku(function: Any) -> Model:
  """Wraps a haiku network that maps a batch to logits as a model.

  Args:
    function: a function that calls haiku modules, or what `hk.transform` or
      `hk.without_apply_rng` made of one.

  Returns:
    A model; the same function gives the same object.

  Raises:
    ArgumentError: for `hk.transform_with_state`; and from `init`, when the
      function keeps state or is random.
  """
  import haiku as hk

  if isinstance(function, hk.TransformedWithState):
    raise checks.ArgumentError(
      NO_STATE.format(what="hk.transform_with_state") + ", and pass hk.transform(function)"
    )
  checks.require(
    callable(function) or isinstance(function, hk.Transformed),
    f"function={checks.shown(function)} cannot be called; pass a function that calls haiku modules",
  )
  if library_of(function) is not None or isinstance(function, type | Model):
    require_kind("function", function, "haiku", "pass a function that calls haiku modules")
  return _from_haiku(function)


@functools.cache
def _from_flax(module: Any, call_kwargs: tuple[tuple[str, Any], ...]) -> Model:
  from flax import errors

  kwargs = dict(call_kwargs)

  def init(key: Key, x_one: Array) -> Params:
    checks.key("key", key)
    x = batch_of_one(x_one)
    try:
      variables = module.init(key, x, **kwargs)
      extra = sorted(set(variables) - {"params"})
      if extra:
        raise checks.ArgumentError(NO_STATE.format(what=", ".join(extra)))
      params = variables.get("params", {})
      jax.eval_shape(apply, params, x)
    except errors.InvalidRngError as error:
      raise checks.ArgumentError(
        NO_RANDOMNESS.format(what=first_line(error), how=" with deterministic=True")
      ) from None
    return params

  def apply(params: Params, x: Array) -> jax.Array:
    try:
      return module.apply({"params": params}, x, **kwargs)
    except (
      errors.ScopeCollectionNotFound,
      errors.ScopeParamNotFoundError,
      errors.ScopeParamShapeError,
    ) as error:
      raise _misfit(x, error) from None

  return Model(init, apply)


@functools.cache
def _from_haiku(function: Any) -> Model:
  import haiku as hk

  if isinstance(function, hk.Transformed):
    pure = function
  else:
    pure = hk.transform(function)
  takes_rng = list(inspect.signature(pure.apply).parameters)[1:2] == ["rng"]

  def init(key: Key, x_one: Array) -> Params:
    checks.key("key", key)
    x = batch_of_one(x_one)
    params = _explained(lambda: pure.init(key, x))
    _explained(lambda: jax.eval_shape(apply, params, x))
    return params

  def apply(params: Params, x: Array) -> jax.Array:
    if takes_rng:
      return pure.apply(params, None, x)
    return pure.apply(params, x)

  return Model(init, apply)


def _explained(call: Callable[[], Any]) -> Any:
  """Runs a haiku function; its complaints in our words."""
  try:
    return call()
  except ValueError as error:
    line = first_line(error)
    if "transform_with_state" in str(error):
      raise checks.ArgumentError(NO_STATE.format(what="hk.get_state or hk.set_state")) from None
    if "PRNGKey" in str(error):
      raise checks.ArgumentError(NO_RANDOMNESS.format(what=line, how="")) from None
    raise


def _misfit(x: Array, error: Exception) -> checks.ArgumentError:
  return checks.ArgumentError(
    f"params do not fit x of shape {np.shape(x)}; pass a batch of examples "
    f"like the one given to init ({first_line(error)})"
  )
