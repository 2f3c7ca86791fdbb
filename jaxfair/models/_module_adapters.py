"""Bring your own network: flax.nnx and equinox modules as `Model(init, apply)`.

These modules hold their parameters. An adapter takes the parameters out, as
`{layer: {name: array}}`, and puts those of a training in again on every call.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

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
  import equinox as eqx
  from flax import nnx


def from_nnx(module: "nnx.Module | Callable[[nnx.Rngs], nnx.Module]", **call_kwargs: Any) -> Model:
  """Wraps a flax.nnx module that maps a batch to logits as a model.

      model = models.from_nnx(lambda rngs: nnx.Linear(5, 2, rngs=rngs))

  Args:
    module: a function from `nnx.Rngs` to a module, which draws new initial parameters for every
      key; or a module, whose own parameters are then the start of every training.
    **call_kwargs: passed on every call of the module.

  Returns:
    A model; the same function gives the same object. Its parameters are
    `{layer: {name: array}}`.

  Raises:
    ArgumentError: when the module has variables other than `nnx.Param`, such as batch
      statistics; and from `init`, when it is random.

  Privacy:
    Parameters of a module that is passed as an instance count as public: draw them from a seed,
    or train them on public people.
  """
  return _wrapped(_NNX, module, call_kwargs)


def from_equinox(module: "eqx.Module | Callable[[Key], eqx.Module]", **call_kwargs: Any) -> Model:
  """Wraps an equinox module that maps one example to logits as a model.

      model = models.from_equinox(lambda key: eqx.nn.MLP(5, 2, 16, 1, key=key))

  Args:
    module: a function from a key to a module, which draws new initial parameters for every key;
      or a module, whose own parameters are then the start of every training. The module is applied
      to one example, as is usual in equinox; the model maps it over a batch.
    **call_kwargs: passed on every call of the module.

  Returns:
    A model; the same function gives the same object. Its parameters are the module's arrays of
    floating-point numbers, as `{layer: {name: array}}`.

  Raises:
    ArgumentError: when the module keeps `eqx.nn.State`, such as batch statistics; and from
      `init`, when it is random.

  Privacy:
    Parameters of a module that is passed as an instance count as public: draw them from a seed,
    or train them on public people.
  """
  return _wrapped(_EQUINOX, module, call_kwargs)


class _Library(NamedTuple):
  """How modules of a library are made and taken apart.

  Attributes:
    name: in `_adapter_errors.KINDS`.
    takes: what a function makes a module from, in words.
    make: `(function, key) -> module`.
    take_apart: `module -> (parameters, put_together)`, and `put_together(parameters)` is a
      function from a batch to logits.
    refusal: what to say of an error of a module that is applied; None if it is its own.
  """

  name: str
  takes: str
  make: Callable[[Any, Key], Any]
  take_apart: Callable[[Any], tuple[Params, Callable[[Params], Callable[..., jax.Array]]]]
  refusal: Callable[[Exception], str | None]


def _wrapped(library: _Library, module: Any, call_kwargs: dict[str, Any]) -> Model:
  named = tuple(sorted(call_kwargs.items()))
  try:
    hash((module, named))
  except TypeError:  # arrays cannot be hashed: nothing to cache by
    return _from_module.__wrapped__(library, module, named)
  return _from_module(library, module, named)


@functools.cache
def _from_module(library: _Library, module: Any, call_kwargs: tuple[tuple[str, Any], ...]) -> Model:
  kwargs, first = dict(call_kwargs), module
  remedy = f"pass a module, or a function of {library.takes} that returns one"
  drawn = library_of(module) is None and callable(module) and not isinstance(module, type | Model)
  if drawn:
    # What does not depend on the key is a constant, also if a training is being traced around.
    with jax.ensure_compile_time_eval():
      first = library.make(module, jax.random.key(0))
  require_kind("what module returns" if drawn else "module", first, library.name, remedy)
  own, put_together = library.take_apart(first)
  del first

  def init(key: Key, x_one: Array) -> Params:
    checks.key("key", key)
    params = library.take_apart(library.make(module, key))[0] if drawn else own
    x = batch_of_one(x_one)
    try:
      jax.eval_shape(apply, params, x)
    except Exception as error:
      told = library.refusal(error)
      if told is None and isinstance(error, TypeError | ValueError):
        told = f"the module does not take x of shape {x.shape} ({first_line(error)})"
      if told is None:
        raise
      raise checks.ArgumentError(told) from error
    return params

  def apply(params: Params, x: Array) -> jax.Array:
    return put_together(params)(x, **kwargs)

  return Model(init, apply)


def _take_nnx_apart(module: Any) -> tuple[Params, Callable[[Params], Any]]:
  from flax import nnx

  parts: Any = nnx.split(module, nnx.Param, ...)
  graph, params, rest = parts
  kinds = {type(own) for _, own in nnx.to_flat_state(rest)}
  state = {kind.__name__ for kind in kinds if not issubclass(kind, nnx.RngState)}
  checks.require(not state, NO_STATE.format(what=", ".join(sorted(state))))
  own, structure = _by_layer(params, ".value")

  def put_together(given: Params) -> Any:
    return nnx.merge(graph, structure(given), rest)

  return own, put_together


def _nnx_refusal(error: Exception) -> str | None:
  """Dropout counts its draws, which flax does not allow while it is traced from outside."""
  if "RngCount" in str(error) or "rngs" in first_line(error):
    how = " with module.eval() or deterministic=True"
    return NO_RANDOMNESS.format(what=first_line(error), how=how)
  return None


def _make_nnx(function: Any, key: Key) -> Any:
  from flax import nnx

  return function(nnx.Rngs(key))


def _take_equinox_apart(module: Any) -> tuple[Params, Callable[[Params], Any]]:
  import equinox as eqx

  is_state = functools.partial(_is_a, eqx.nn.StateIndex)
  state = [leaf for leaf in jax.tree.leaves(module, is_leaf=is_state) if is_state(leaf)]
  checks.require(not state, NO_STATE.format(what="eqx.nn.StateIndex"))
  params, rest = eqx.partition(module, eqx.is_inexact_array)
  own, structure = _by_layer(params, "")

  def put_together(given: Params) -> Any:
    whole = eqx.combine(structure(given), rest)
    return lambda x, **kwargs: jax.vmap(lambda one: whole(one, **kwargs))(x)

  return own, put_together


def _equinox_refusal(error: Exception) -> str | None:
  if "requires a key" in str(error):
    how = " with eqx.nn.inference_mode(module)"
    return NO_RANDOMNESS.format(what=first_line(error), how=how)
  return None


def _is_a(cls: type, value: Any) -> bool:
  return isinstance(value, cls)


def _by_layer(params: Any, suffix: str) -> tuple[Params, Callable[[Params], Any]]:
  """`{layer: {name: array}}` of a module's parameters, and the way back."""
  found, structure = jax.tree_util.tree_flatten_with_path(params)
  names = []
  for path, _ in found:
    words = jax.tree_util.keystr(path, simple=True, separator=".").removesuffix(suffix)
    layer, _, name = words.rpartition(".")
    names.append((layer or "own", name))
  own: dict[str, dict[str, Any]] = {layer: {} for layer, _ in names}
  for (layer, name), (_, leaf) in zip(names, found, strict=True):
    own[layer][name] = leaf

  def back(given: Params) -> Any:
    return jax.tree.unflatten(structure, [given[layer][name] for layer, name in names])

  return own, back


_NNX = _Library("flax.nnx", "rngs", _make_nnx, _take_nnx_apart, _nnx_refusal)
_EQUINOX = _Library(
  "equinox", "a key", lambda function, key: function(key), _take_equinox_apart, _equinox_refusal
)
