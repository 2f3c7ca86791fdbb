"""Shapes that everything shares: arrays, people, models, what a training returns.

Annotations of arrays carry shapes for the reader and for type checkers; nothing checks them at
run time. Names with `Like` also take lists and data frames: whatever NumPy makes an array of.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
from jaxtyping import Float, Int, Shaped


class SupportsArray(Protocol):
  """Anything that NumPy turns into an array, such as a column of a data frame."""

  def __len__(self) -> int:
    """The length of the first axis."""
    ...

  def __array__(self) -> np.ndarray:
    """The values."""
    ...


Array: TypeAlias = jax.Array | np.ndarray
ArrayLike: TypeAlias = Array | float | Sequence[Any] | SupportsArray
Number: TypeAlias = float | Float[Array, "..."]  # traced or stacked ones included

Index: TypeAlias = int | Int[Array, ""]  # of a row, a step or a block; traced ones included

Key: TypeAlias = jaxtyping.Key[jax.Array, ""]
Keys: TypeAlias = jaxtyping.Key[jax.Array, "k"]

Features: TypeAlias = Shaped[Array, "n ..."]
Labels: TypeAlias = Int[Array, "n"]
Groups: TypeAlias = Int[Array, "n"]
Scores: TypeAlias = Float[Array, "n classes"]  # logits or probabilities
Votes: TypeAlias = Int[Array, "n classes"]
PerPerson: TypeAlias = Float[Array, "n"]  # weights, losses

FeaturesLike: TypeAlias = Features | Sequence[Any] | SupportsArray
LabelsLike: TypeAlias = Labels | Sequence[int] | SupportsArray
GroupsLike: TypeAlias = Groups | Sequence[int] | SupportsArray
VotesLike: TypeAlias = Votes | Sequence[Sequence[int]] | SupportsArray
PerPersonLike: TypeAlias = PerPerson | Sequence[float] | SupportsArray

PyTree: TypeAlias = Any  # a tree of arrays, or of what stands for them, as jax.tree maps over it
Params: TypeAlias = PyTree
Counts: TypeAlias = PyTree  # [n] numbers of people, or a tree of such arrays
PerExampleLoss: TypeAlias = Callable[[jax.Array, Any], jax.Array]  # (logits, y) -> [n]


class Examples(NamedTuple):
  """People: a pytree whose leaves share the leading axis n.

  Attributes:
    x: [n, ...] float32 features.
    y: [n] int32 class ids.
    group: [n] int32 group ids.
  """

  x: Any  # arrays; axes or flags where a pytree of those is asked for
  y: Any
  group: Any

  @property
  def size(self) -> int:
    """Number of people, n."""
    return int(self.x.shape[0])

  def take(self, rows: Array | slice) -> "Examples":
    """The people at these rows (indices or a boolean mask).

    NumPy rows of NumPy people are NumPy; rows of JAX, traced or not, give JAX.
    """
    own = self
    if isinstance(rows, jax.Array):
      own = jax.tree.map(jnp.asarray, self)
    return Examples(own.x[rows], own.y[rows], own.group[rows])


@runtime_checkable
class Source(Protocol):
  """People who are read when they are needed, such as rows of a file larger than memory.

  Trainers that take a `Source` in place of `Examples` draw the row numbers of each batch
  themselves and ask for these rows alone. `data.open_source` makes sources of arrays and files;
  any object with these three members is one.
  """

  @property
  def size(self) -> int:
    """Number of people, n."""
    ...

  def take(self, rows: np.ndarray) -> Examples:
    """The people at these row numbers, in this order, as NumPy arrays; called by one thread."""
    ...

  def fingerprint(self) -> str:
    """Identifies the content; a training in a folder is continued with the same people only."""
    ...


class Model(NamedTuple):
  """A function of parameters and a batch, with no operation across examples.

  Attributes:
    init: `(key, x_one) -> params`, where `x_one` is one example without a
      batch axis.
    apply: `(params, x_batch) -> logits`, batch axis first.
  """

  init: Callable[[Key, Array], Params]
  apply: Callable[[Params, Array], jax.Array]


class NonPrivateTrace(NamedTuple):
  """The trace of a training, computed from the training data without noise.

  Not for release: no noise protects these numbers. Reports of private runs
  leave them out.

  Attributes:
    loss: [steps] mean loss of each step's batch, before the step.
    grad_norm: [steps] norm of the gradient that was applied.
  """

  loss: Float[jax.Array, "steps"]
  grad_norm: Float[jax.Array, "steps"]


class Fit(NamedTuple):
  """What every trainer returns.

  Attributes:
    params: the trained parameters.
    trace: what happened along the way.
  """

  params: Params
  trace: Any


class Trainer(Protocol):
  """A training: a pure function of people, settings and a key.

  Trainers may take more arguments by name, such as `initial` parameters; what
  each can do (jit, vmap over seeds and stacked settings) is in the table of
  tests/training/test_conformance.py.
  """

  def __call__(
    self, model: Model, loss: PerExampleLoss, examples: Examples, config: Any, /, *, key: jax.Array
  ) -> Fit:
    """Trains the model on the examples with the trainer's own settings."""
    ...


class AnchoredTrainer(Protocol):
  """A trainer that can start at given parameters and stay near them."""

  def __call__(
    self,
    model: Model,
    loss: PerExampleLoss,
    examples: Examples,
    config: Any,
    /,
    *,
    key: jax.Array,
    initial: Params | None = None,
    anchor: Params | None = None,
  ) -> Fit:
    """Trains from `initial`, with `anchor` as the proximity term's center."""
    ...
