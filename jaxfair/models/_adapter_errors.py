"""Error messages of the adapters: the wrong library, state besides parameters, randomness."""

import jax.numpy as jnp

from jaxfair import checks
from jaxfair.types import Array, Model

NO_STATE = (
  "the model has state in addition to its parameters ({what}); use GroupNorm or "
  "LayerNorm in place of BatchNorm"
)
NO_RANDOMNESS = (
  "the model draws random numbers when it is applied ({what}); remove dropout, or turn it off{how}"
)

# Where the base class of a library's networks is defined -> what it is, and its adapter.
KINDS = {
  "flax.linen": ("a flax.linen module", "from_flax"),
  "flax.nnx": ("a flax.nnx module", "from_nnx"),
  "equinox": ("an equinox module", "from_equinox"),
  "haiku": ("a haiku network", "from_haiku"),
}


def require_kind(argument: str, value: object, library: str, remedy: str) -> None:
  """Raises unless a value is a network of this library; names the adapter that takes it.

  The value itself is not printed: a module prints all its layers, and its parameters.
  """
  found = library_of(value)
  if found == library:
    return
  what, _ = KINDS[library]
  if isinstance(value, Model):
    remedy = "it is a Model already, which trainers take as it is"
  elif isinstance(value, type):
    remedy = f"it is the class {value.__name__}; {remedy}"
  elif found is not None:
    told, adapter = KINDS[found]
    remedy = f"it is {told}; use models.{adapter}"
  raise checks.ArgumentError(f"{argument} is not {what} (but {type(value).__name__}): {remedy}")


def library_of(value: object) -> str | None:
  """The library that a network's class comes from, without importing any; None for others."""
  return None if isinstance(value, type) else _library(type(value))


def _library(kind: type) -> str | None:
  for cls in kind.__mro__:
    for library in KINDS:
      if f"{cls.__module__}.".startswith(f"{library}."):
        return library
  return None


def batch_of_one(x_one: Array) -> Array:
  """One example with a batch axis."""
  return jnp.expand_dims(x_one, 0)


def first_line(error: Exception) -> str:
  """What went wrong, without advice and addresses of documentation."""
  lines = str(error).splitlines() or [type(error).__name__]
  return lines[0].split(". ")[0].split(" (http")[0]
