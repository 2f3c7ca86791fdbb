"""Random programs: what the search proves must hold by brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxfair.models import _axis_rules, _dependence

ROWS = _axis_rules.ROWS

# Every operation takes the array module first, so that one program can be
# traced by jax and run, without compiling, by NumPy.


def transpose(xp, x, a, b):
  axes = list(range(x.ndim))
  i, j = a % x.ndim, b % x.ndim
  axes[i], axes[j] = axes[j], axes[i]
  return xp.transpose(x, axes)


def merge(xp, x, a, b):
  """Two neighboring axes in one."""
  if x.ndim < 2:
    return x
  i = a % (x.ndim - 1)
  shape = x.shape
  return x.reshape(*shape[:i], shape[i] * shape[i + 1], *shape[i + 2 :])


def split(xp, x, a, b):
  """One axis in two."""
  i = a % x.ndim
  size = x.shape[i]
  factors = [k for k in range(1, size + 1) if size % k == 0]
  first = factors[b % len(factors)]
  return x.reshape(*x.shape[:i], first, size // first, *x.shape[i + 1 :])


def total(xp, x, a, b):
  return x.sum(axis=a % x.ndim)


def centered(xp, x, a, b):
  return x - x.mean(axis=a % x.ndim, keepdims=True)


def largest(xp, x, a, b):
  return x.max(axis=a % x.ndim, keepdims=b % 2 == 0)


def running(xp, x, a, b):
  return xp.cumsum(x, axis=a % x.ndim)


def ordered(xp, x, a, b):
  return xp.sort(x, axis=a % x.ndim)


def flipped(xp, x, a, b):
  return xp.flip(x, axis=a % x.ndim)


def rolled(xp, x, a, b):
  return xp.roll(x, b, axis=a % x.ndim)


def doubled(xp, x, a, b):
  return xp.concatenate([x, xp.sin(x)], axis=a % x.ndim)


def padded(xp, x, a, b):
  width = [(0, 0)] * x.ndim
  width[a % x.ndim] = (0, b % 2)
  return xp.pad(x, width)


def cut(xp, x, a, b):
  """The axis without its last place, if it has others."""
  i = a % x.ndim
  return x[(slice(None),) * i + (slice(0, max(1, x.shape[i] - b % 2)),)]


def first(xp, x, a, b):
  i = a % x.ndim
  return x[(slice(None),) * i + (0,)]


def picked(xp, x, a, b):
  """Some places of an axis, in another order, by a gather."""
  i = a % x.ndim
  places = np.arange(x.shape[i])[::-1][: 1 + b % x.shape[i]].copy()
  return xp.take(x, places, axis=i)


def widened(xp, x, a, b):
  return xp.expand_dims(x, a % (x.ndim + 1))


def repeated(xp, x, a, b):
  return xp.broadcast_to(x[None], (2, *x.shape))


def weighted(xp, x, a, b):
  """A matrix product of one axis with constants."""
  i = a % x.ndim
  w = np.cos(np.arange(x.shape[i] * 2.0)).reshape(-1, 2).astype(np.float32)
  return xp.moveaxis(xp.tensordot(x, w, (i, 0)), -1, b % x.ndim)


def paired(xp, x, a, b):
  """All products of places along two axes."""
  i = a % x.ndim
  y = xp.moveaxis(x, i, 0)
  return xp.einsum("i...,j...->ij...", y, y)


def own_products(xp, x, a, b):
  """Products of places of one axis, for each place of the first."""
  if x.ndim < 2:
    return x
  y = x.reshape(x.shape[0], -1)
  return xp.einsum("ni,nj->nij", y[:, :2], y[:, :3])


def outer_sum(xp, x, a, b):
  """Different axes against each other."""
  if x.ndim != 2:
    return x
  return x[:, None, :] + x[None, :, :]


OPERATIONS = [
  transpose,
  merge,
  split,
  total,
  centered,
  largest,
  running,
  ordered,
  flipped,
  rolled,
  doubled,
  padded,
  cut,
  first,
  picked,
  widened,
  repeated,
  weighted,
  paired,
  own_products,
  outer_sum,
]
STEPS = st.lists(
  st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 5), st.integers(0, 5)),
  min_size=1,
  max_size=6,
)


def run(xp, x, steps):
  for operation, a, b in steps:
    if x.ndim and x.size < 2000:
      x = operation(xp, x, a, b)
  return x


def depends_on_one_row_each(steps, x):
  """Whether output row i never changes when another input row does."""
  before = run(np, x, steps)
  if before.ndim == 0 or before.shape[0] != len(x):
    return False
  for row in range(len(x)):
    changed = x.copy()
    changed[row] = 5 - 3 * changed[row]
    after = run(np, changed, steps)
    others = np.arange(len(x)) != row
    if not np.array_equal(before[others], after[others]):
      return False
  return True


@pytest.mark.slow
@settings(max_examples=400, deadline=None, derandomize=True)
@given(STEPS)
def test_what_is_proved_holds_by_brute_force(steps):
  x = np.random.default_rng(0).standard_normal((ROWS, 2, 3), np.float32)
  state = _dependence.analyze(lambda _, x: run(jnp, x, steps), (), (x,))
  independent = state in (0, None) and not isinstance(state, bool)
  if independent:
    assert depends_on_one_row_each(steps, x)


@pytest.mark.parametrize(
  "steps",
  [
    [(centered, 1, 0), (weighted, 2, 2), (ordered, 1, 0)],
    [(merge, 0, 0), (weighted, 1, 1), (split, 0, 2)],
    [(transpose, 0, 2), (running, 0, 0), (doubled, 1, 0), (transpose, 0, 2)],
    [(picked, 2, 1), (padded, 1, 1), (flipped, 1, 0), (cut, 2, 1)],
    [(own_products, 0, 0), (largest, 1, 1), (widened, 1, 0)],
    [(repeated, 0, 0), (total, 0, 0), (first, 1, 0), (rolled, 1, 1)],
  ],
)
def test_these_are_proved(steps):
  """So that the property above is not kept by proving nothing."""
  x = np.random.default_rng(0).standard_normal((ROWS, 2, 3), np.float32)
  state = _dependence.analyze(lambda _, x: run(jnp, x, steps), (), (x,))
  assert state == 0
  assert depends_on_one_row_each(steps, x)


def one_row(x):
  """The first row's first places, by a gather of one row."""
  numbers = jax.lax.GatherDimensionNumbers(
    offset_dims=(0, 1), collapsed_slice_dims=(), start_index_map=(1,)
  )
  return jax.lax.gather(x, jnp.array([0]), numbers, (1, x.shape[1]))


W = np.ones((3, 4), np.float32)
TRAPS = {
  "rows paired after doubling": lambda x: jnp.concatenate([x, x]).reshape(3, 2, 4).sum(1),
  "rows paired after padding": lambda x: jnp.pad(x, ((0, 3), (0, 0))).reshape(3, 2, 4).sum(1),
  "sorted across a cut": lambda x: jnp.sort(x.reshape(2, 6)).reshape(3, 4),
  "rows by rows": lambda x: x @ x.T,
  "weights by rows": lambda x: W @ x.T,
  "one row for all": lambda x: x + one_row(x),
  "convolution over rows": lambda x: jax.lax.conv(
    x.T[:3, None], np.ones((1, 1, 3), np.float32), (1,), "SAME"
  ).squeeze(1),
  "rows paired after repeating": lambda x: jax.lax.tile(x, (2, 1)).reshape(3, 2, 4).sum(1),
  "one row, unstacked": lambda x: jnp.unstack(x[:, :3])[0],
  "the outer axis": lambda x: jnp.stack([x, x, x])[:, 0],
}


@pytest.mark.parametrize("name", TRAPS)
def test_these_are_not_proved(name):
  x = np.zeros((3, 4), np.float32)
  state = _dependence.analyze(lambda _, x: TRAPS[name](x), (), (x,))
  assert isinstance(state, _dependence.Mixed | _dependence.Unknown)


@pytest.mark.parametrize(
  "function",
  [
    lambda x: (W @ x.T).T,
    lambda x: x[None][0],
    lambda x: jnp.stack([x, x, x])[0],
    lambda x: jnp.take(W, (x > 0).astype(jnp.int32), axis=0),
    lambda x: jnp.take_along_axis(x, jnp.zeros((3, 1), jnp.int32), 1),
    lambda x: jax.lax.dynamic_slice(x, (0, 1), (3, 2)),
    lambda x: jnp.split(x, 2, axis=1)[1],
    lambda x: jnp.pad(x, ((0, 0), (1, 2))),
    lambda x: jnp.stack([x, W, x], axis=1),
    lambda x: jax.lax.tile(x, (1, 2)),
    lambda x: jnp.unstack(x, axis=1)[0],
    lambda x: jnp.unstack(x[None])[0],
    lambda x: jnp.argmax(x, axis=1),
  ],
)
def test_these_are_proved_too(function):
  x = np.zeros((3, 4), np.float32)
  assert _dependence.analyze(lambda _, x: function(x), (), (x,)) == 0


def test_pooling_and_convolutions_of_single_images():
  def apply(kernel, x):
    y = jax.lax.conv(x, kernel, (1, 1), "SAME")
    y = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return y.sum((1, 2, 3))

  kernel, x = np.zeros((4, 1, 3, 3), np.float32), np.zeros((3, 1, 4, 4))
  assert _dependence.analyze(apply, kernel, (x.astype(np.float32),)) == 0


def test_windows_over_the_batch_are_seen():
  def apply(_, x):
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 1), (1, 1), "SAME")

  state = _dependence.analyze(apply, (), (np.zeros((3, 2), np.float32),))
  assert state == _dependence.Mixed("reduce_window_sum across the batch axis")


def test_two_batches_are_kept_apart_row_by_row():
  logits, y = np.zeros((3, 4), np.float32), np.zeros(3, np.int32)
  picked = _dependence.analyze(
    lambda _, logits, y: jnp.take_along_axis(logits, y[:, None], 1)[:, 0], (), (logits, y)
  )
  crossed = _dependence.analyze(
    lambda _, logits, y: (logits[:, 0][None] + y[:, None]).sum(1), (), (logits, y)
  )
  assert picked == 0
  assert crossed == _dependence.Mixed("add pairs different rows of the batch")


def test_operations_without_a_rule_are_not_guessed():
  state = _dependence.analyze(
    lambda _, x: jax.lax.fori_loop(0, 2, lambda _, s: 2 * s, x), (), (np.zeros((3, 2), np.float32),)
  )
  assert isinstance(state, _dependence.Unknown)


def test_an_output_with_its_rows_elsewhere_is_not_passed():
  for function in (lambda _, x: x.T, lambda _, x: x.reshape(-1)):
    state = _dependence.analyze(function, (), (np.zeros((3, 2), np.float32),))
    assert isinstance(state, _dependence.Unknown)


def test_numbers_of_a_program_follow_the_size_of_the_batch():
  x = np.zeros((7, 2), np.float32)

  def numbers(function, rows):
    return _dependence.numbers(lambda _, x: function(x), (), (x,), rows)

  for function in (jax.nn.softmax, lambda x: jnp.tanh(x).sum(1) / 2):
    assert numbers(function, 1) == numbers(function, 3)
  assert numbers(lambda x: x / len(x), 1) != numbers(lambda x: x / len(x), 3)
