"""Argument checks: what passes, what is refused, and what the message says."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks
from jaxfair.types import Examples


@pytest.mark.parametrize(
  ("call", "told"),
  [
    (lambda: checks.positive("epsilon", 0.0), "epsilon=0.0 must be above 0"),
    (lambda: checks.positive("epsilon", float("nan")), "epsilon=nan"),
    (lambda: checks.positive("epsilon", "a"), "epsilon='a' is not a number"),
    (lambda: checks.non_negative("decay", -1), "decay=-1 must be 0 or above"),
    (lambda: checks.number("q", 1.5, low=0, high=1, open_low=True), r"q=1.5 must be in (0, 1]"),
    (lambda: checks.number("z", np.array([1.0, -2.0]), low=0), "z=-2.0"),
    (lambda: checks.integer("k", 2.5), "k=2.5 must be a whole number"),
    (lambda: checks.integer("k", True), "k=True must be a whole number"),
    (lambda: checks.integer("k", 0, low=1), "k=0 must be at least 1"),
    (
      lambda: checks.integer("k", 9, high=3, remedy="ask for less"),
      "k=9 must be at most 3; ask for less",
    ),
    (lambda: checks.one_of("m", "gosht", ["ghost", "vmap"]), "did you mean ghost"),
    (lambda: checks.one_of("m", "c", ["a", "a, b"]), "use one of a, 'a, b'"),
    (lambda: checks.same_length(x=[1], y=[1, 2]), "x has 1, y has 2"),
    (lambda: checks.same_length(x=[1], y=2), "y is a single value; pass one row per person"),
    (
      lambda: checks.one_per_person(x=[1, 2], y=np.zeros((2, 1))),
      "y has shape (2, 1); pass one value per person, shape (2,)",
    ),
    (
      lambda: checks.people(Examples(np.zeros((2, 3)), np.zeros(2), np.zeros((2, 1)))),
      "examples.group has shape (2, 1)",
    ),
    (
      lambda: checks.finite("x", np.array([[0.0], [np.nan], [np.inf]])),
      "2 rows with NaN or infinite values (the first is row 1)",
    ),
    (lambda: checks.ids("y", np.array([0, 3]), 3), "outside 0..2"),
    (lambda: checks.ids("y", np.array([0.0]), 3), "not integer ids"),
    (lambda: checks.key("key", 0), "pass key=jax.random.key(seed)"),
    (lambda: checks.key("key", jax.random.PRNGKey(0)), "wrap_key_data"),
    (lambda: checks.key("key", None), "must be a random key"),
    (lambda: checks.one_key("key", 0), "must be a random key"),
    (
      lambda: checks.one_key("key", jax.random.split(jax.random.key(0), 3)),
      "key is an array of 3 keys",
    ),
  ],
)
def test_refuses_with_a_message_to_act_on(call, told):
  with pytest.raises(checks.ArgumentError) as caught:
    call()
  assert told in str(caught.value)
  assert "\n" not in str(caught.value)


def test_accepts_what_is_right():
  checks.positive("a", 1e-300)
  checks.number("a", [0.0, 1.0], low=0.0, high=1.0)
  checks.integer("a", np.int32(3), low=3, high=3)
  checks.one_of("a", "b", ["b"])
  assert checks.options("c", ["M", "M, corrected"]) == ("use one of M, 'M, corrected'")
  checks.finite("a", np.zeros((2, 3)))
  checks.ids("a", np.array([], int), 0)
  checks.key("key", jax.random.key(0))
  checks.one_key("key", jax.random.key(0))
  checks.key("keys", jax.random.split(jax.random.key(0), 3))
  assert checks.same_length(a=np.zeros(3), b=[1, 2, 3]) == 3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_large_numbers_are_finite_and_what_hides_among_them_is_not(dtype):
  large = np.full((40, 3), np.finfo(dtype).max, dtype)  # squares overflow
  checks.finite("a", large)
  checks.finite("a", large[::2, 1])
  for bad in (np.nan, np.inf, -np.inf):
    for row in (0, 17, 39):
      mixed = large.copy()
      mixed[row, 1] = bad
      with pytest.raises(checks.ArgumentError, match=f"the first is row {row}"):
        checks.finite("a", mixed)
  checks.finite("a", np.arange(6).reshape(2, 3))
  checks.finite("a", np.zeros((0, 3), dtype))


def test_values_inside_a_transformation_are_not_looked_at():
  @jax.jit
  def inside(value):
    checks.positive("value", value)
    checks.finite("value", value[None])
    checks.ids("value", value[None], 3)
    return value

  assert inside(jnp.float32(-1.0)) == -1.0


def test_argument_errors_are_value_errors_and_ours():
  assert issubclass(checks.ArgumentError, ValueError)
  assert issubclass(checks.ArgumentError, checks.JaxfairError)


def test_messages_stay_short_whatever_was_passed():
  for value in (10**400, -(10**400), "x" * 10**6, [10**5000] * 99, [[-1] * 99] * 9):
    assert len(checks.shown(value)) < 2000
    bounded = functools.partial(checks.integer, low=0, high=9)
    for call in (checks.positive, bounded):
      with pytest.raises(checks.ArgumentError, match=r"^size=") as caught:
        call("size", value)
      assert len(str(caught.value)) < 2000
  with pytest.raises(checks.ArgumentError, match=r"size=.* or above, and is too"):
    checks.non_negative("size", 10**400)


def test_of_thousands_of_names_some_are_listed():
  told = checks.options("name_77", [f"name_{i}" for i in range(5000)])
  assert "(4950 more) (did you mean name_77?)" in told
  assert len(checks.options("x" * 10**6, ["x", "y"])) < 100
