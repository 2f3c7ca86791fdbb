"""Recognizes what is trained: the same model and loss, in any process.

Two networks can have parameters of the same shapes. They differ in the program that they
are traced to, so that is what is hashed: operations, their settings, which value goes where, and
the contents of all constants. Names of functions and addresses of objects are left out: they differ
between processes, or between two programs that compute the same.
"""

import hashlib
import itertools
import re
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core

from jaxfair import _jaxpr
from jaxfair.training._ensembles import is_stacked
from jaxfair.training._optimizers import optimizer_of
from jaxfair.types import Examples, Key, Model, Number, Params, PerExampleLoss

ROWS = 2  # of the batch that is traced; any number would do
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")
_NAMES = ("name", "ctx_mesh")  # of a nested program: no part of what it does


def programs(model: Model, loss: PerExampleLoss, examples: Examples, config: Any) -> dict[str, str]:
  """Fingerprints of what a training consists of, as one resumes it by.

  Gradients are traced as well, so that custom derivative rules count. No
  value of the people is used, only shapes.

  Args:
    model: its first parameters count, too.
    loss: `(logits, y) -> [n]` losses.
    examples: the people, or some of them.
    config: `optimizer`, `augment` and `penalties` are used, if it has them.
  """
  one = jax.ShapeDtypeStruct(examples.x.shape[1:], examples.x.dtype)
  x = jax.ShapeDtypeStruct((ROWS, *one.shape), one.dtype)
  y = jax.ShapeDtypeStruct((ROWS, *examples.y.shape[1:]), examples.y.dtype)
  key = jax.eval_shape(lambda: jax.random.key(0))
  params = jax.eval_shape(model.init, key, one)
  logits = jax.eval_shape(model.apply, params, x)
  apply = fingerprint(_with_gradient(model.apply), params, x)
  found = {
    "model": _joined(fingerprint(model.init, key, one), apply),
    "loss": fingerprint(_with_gradient(loss), logits, y),
  }
  # Of numbers that differ between members the first stands for all.
  first = jax.tree_util.tree_map_with_path(
    lambda path, value: value[0] if is_stacked(path, value) else value, config
  )
  optimizer = getattr(first, "optimizer", None)
  number = jax.ShapeDtypeStruct((), np.float32)
  if optimizer is not None:

    def step(params: Params, rate: Number) -> Any:
      made = optimizer_of(types.SimpleNamespace(optimizer=optimizer, learning_rate=rate))
      clip = {"l2_clip": rate} if hasattr(first, "l2_clip") else {}
      return made.update(params, made.init(params), params, **clip)

    found["optimizer"] = fingerprint(step, params, number)
  if (augment := getattr(first, "augment", None)) is not None:
    found["augment"] = fingerprint(augment, one, key)
  if penalties := getattr(first, "penalties", ()):

    def terms(params: Params, clip: Number, key: Key) -> Any:
      return [penalty.gradient(params, l2_clip=clip, key=key) for penalty in penalties]

    clip = number if hasattr(config, "l2_clip") else None
    inside = [penalty.inside for penalty in penalties]
    weights = _hashed(_words([jax.tree.leaves(config.penalties), inside]))
    found["penalty"] = _joined(weights, fingerprint(terms, params, clip, key))
  return found


def fingerprint(function: Callable[..., Any], *shapes: Any) -> str:
  """SHA-256 of the program that a function of these shapes is traced to."""
  return _hashed(_words(jax.make_jaxpr(function)(*shapes)))


def _with_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
  """The function, and a gradient with respect to its first argument."""

  def both(first: Any, *others: Any) -> Any:
    value, pull = jax.vjp(lambda own: function(own, *others), first)
    return value, pull(value)

  return both


def _hashed(words: Iterator[bytes]) -> str:
  digest = hashlib.sha256()
  for word in words:
    digest.update(len(word).to_bytes(8, "big"))  # so that no two lists join
    digest.update(word)
  return digest.hexdigest()


def _joined(*digests: str) -> str:
  return _hashed(digest.encode() for digest in digests)


def _words(value: object) -> Iterator[bytes]:
  """A program, or a setting in it, as bytes that any process would give."""
  if isinstance(value, core.ClosedJaxpr):
    yield from _words(value.consts)
    yield from _program(value.jaxpr)
  elif isinstance(value, core.Jaxpr):
    yield from _program(value)
  elif hasattr(value, "__array__"):
    yield from _array(value)
  elif isinstance(value, dict):
    for name in sorted(value, key=str):
      yield str(name).encode()
      yield from _words(value[name])
  elif isinstance(value, set | frozenset):
    yield from _words(sorted(map(str, value)))
  elif isinstance(value, tuple | list):
    yield f"{len(value)} in a row".encode()
    for part in value:
      yield from _words(part)
  elif callable(value):
    yield getattr(value, "__qualname__", type(value).__qualname__).encode()
  else:
    yield _ADDRESS.sub("", str(value)).encode()


def _array(value: Any) -> Iterator[bytes]:
  if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
    value = jax.random.key_data(value)
  value = np.asarray(value)
  if value.ndim == 0 and value.dtype.kind in "iu":
    yield str(int(value)).encode()  # axes are NumPy's integers now and then
    return
  yield f"{value.shape} {value.dtype}".encode()
  yield np.ascontiguousarray(value).tobytes()


def _program(program: core.Jaxpr) -> list[bytes]:
  words: list[bytes] = []
  numbers = itertools.count()  # variables by their place, not their name

  def places(variables: Sequence[Any]) -> list[list[bytes]]:
    return [[str(next(numbers)).encode()] for _ in variables]

  def note(atoms: Sequence[Any], values: Sequence[list[bytes]]) -> None:
    for atom, value in zip(atoms, values, strict=True):
      words.append(str(atom.aval).encode())
      words.extend(value)

  def rule(step: core.JaxprEqn, values: list[Any]) -> list[list[bytes]]:
    words.append(step.primitive.name.encode())
    nested = _jaxpr.kind(step) is _jaxpr.Kind.CALL
    for name in sorted(step.params):
      if not (nested and name in _NAMES):
        words.append(name.encode())
        words.extend(_words(step.params[name]))
    outputs = places(step.outvars)
    note([*step.invars, *step.outvars], [*values, *outputs])
    return outputs

  variables = [*program.constvars, *program.invars]
  inputs = places(variables)
  note(variables, inputs)
  outputs = _jaxpr.walk(program, inputs, rule, constant=lambda v: list(_array(np.asarray(v))))
  words.append(b"out")
  note(program.outvars, outputs)
  return words
