"""What may be asked: each sensitive column is one question.

A column of words is several one-hot features but one question. A question
knows every answer that is possible, which bounds what an unasked column can do.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.types import Array, Features

STEP = 0.2  # Delta


class Questions(NamedTuple):
  """Sensitive columns; a feature in none of them is public.

  Attributes:
    members: [q, d] whether a feature belongs to a question.
    values: [q, K, d] possible answers: every word of a column of words, a
      grid from -1 to 1 for a number; 0 elsewhere. Shorter lists repeat their
      first answer.
    counts: [q] how many answers are different.
  """

  members: Array
  values: Array
  counts: Array

  @property
  def size(self) -> int:
    """Number of questions, q."""
    return int(self.members.shape[0])

  def known(self, revealed: jax.Array) -> jax.Array:
    """[d] which features are known once these questions are answered."""
    hidden = jnp.any(self.members & ~revealed[:, None], axis=0)
    return ~hidden


def questions(
  feature_names: Sequence[str],
  columns: Sequence[str],
  sensitive: Sequence[str] | None = None,
  *,
  step: float = STEP,
) -> tuple[tuple[str, ...], Questions]:
  """Groups the features of an encoded data set into questions, one per sensitive column.

  Args:
    feature_names: [d] as `Dataset.feature_names`.
    columns: [d] as `Dataset.columns`.
    sensitive: names of columns; all of them by default.
    step: of the grid on a number (the paper's Delta). Both ends are always on
      it: for step 0.2 it has 11 points.

  Returns:
    The names of the questions, and the questions.
  """
  checks.number("step", step, low=0.0, high=2.0, open_low=True)
  names = tuple(dict.fromkeys(columns))
  wanted = names if sensitive is None else tuple(sensitive)
  checks.require(len(wanted) > 0, "sensitive is empty; name at least one column")
  for name in wanted:
    if name not in names:
      raise checks.ArgumentError(
        f"sensitive={name!r} is not a column; {checks.options(name, names)}"
      )
  checks.require(len(set(wanted)) == len(wanted), "sensitive names a column twice")
  origin = np.asarray(columns)
  grid = np.linspace(-1.0, 1.0, round(2 / step) + 1)
  answers = []
  for name in wanted:
    rows = np.flatnonzero(origin == name)
    is_number = len(rows) == 1 and feature_names[rows[0]] == name
    listed = grid[:, None] if is_number else 2 * np.eye(len(rows)) - 1
    placed = np.zeros((len(listed), len(columns)), np.float32)
    placed[:, rows] = listed
    answers.append(placed)
  longest = max(map(len, answers))
  padded = [np.concatenate([a, np.repeat(a[:1], longest - len(a), axis=0)]) for a in answers]
  return wanted, Questions(
    np.stack([origin == name for name in wanted]),
    np.stack(padded),
    np.array([len(a) for a in answers], np.int32),
  )


def with_constants(asked: Questions, x: Features) -> Questions:
  """Gives features that never vary in the training data their one value.

  The scaler maps a feature that was constant in the training part to 0 for
  everybody, later people included.
  """
  x = jnp.asarray(x)
  constant = jnp.all(x == x[0], axis=0)
  fixed = asked.members[:, None, :] & constant
  return asked._replace(values=jnp.where(fixed, x[0], asked.values))


def as_arrays(questions: Questions) -> Questions:
  """The questions as JAX arrays of the types programs are compiled for."""
  return Questions(
    jnp.asarray(questions.members, bool),
    jnp.asarray(questions.values, jnp.float32),
    jnp.asarray(questions.counts, jnp.int32),
  )
