"""Noise on trees: the right law, once per number, and nothing else changed."""

import functools
import re
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxfair import checks, tree
from jaxfair.privacy import _normal, _random_words, noise

FALSE_ALARM = 1e-6
CONTINUOUS = {
  "gaussian": (noise.gaussian, "sigma", stats.norm),
  "laplace": (noise.laplace, "scale", stats.laplace),
}
DISCRETE = {
  "discrete_gaussian": (noise.discrete_gaussian, "sigma"),
  "discrete_laplace": (noise.discrete_laplace, "scale"),
}
ALL = {
  name: (entry[0], entry[1], np.float32 if name in CONTINUOUS else np.int32)
  for name, entry in {**CONTINUOUS, **DISCRETE}.items()
}


def example(dtype):
  rng = np.random.default_rng(0)
  return {
    "w": jnp.asarray(rng.integers(-9, 9, (4, 5)), dtype),
    "b": [jnp.asarray(3, dtype), jnp.asarray(rng.integers(0, 9, 7), dtype)],
    "none": jnp.zeros((0, 3), dtype),
  }


def flat(value):
  return np.concatenate([np.ravel(v) for v in jax.tree.leaves(value)])


def pmf(name, parameter, reach):
  """The law on -reach..reach, written down directly."""
  n = np.arange(-reach, reach + 1)
  if name == "discrete_gaussian":
    weight = np.exp(-(n**2) / (2 * parameter**2))
    return weight / weight.sum()
  return stats.dlaplace.pmf(n, 1 / parameter)


# Every noise ---------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_structure_shapes_and_types_are_kept(name):
  add, parameter, dtype = ALL[name]
  value = example(dtype)
  noisy = add(value, **{parameter: 2.0}, key=jax.random.key(1))
  assert jax.tree.structure(noisy) == jax.tree.structure(value)
  for before, after in zip(*map(jax.tree.leaves, (value, noisy)), strict=True):
    assert after.shape == before.shape
    assert after.dtype == before.dtype


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_zero_noise_returns_the_value_bit_for_bit(name):
  add, parameter, dtype = ALL[name]
  value = example(dtype)
  if name in CONTINUOUS:
    value["odd"] = jnp.array([-0.0, jnp.nan, jnp.inf, 1e-45], jnp.float32)
  same = add(value, **{parameter: 0.0}, key=jax.random.key(1))
  assert flat(same).tobytes() == flat(value).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_leaves_continue_one_stream(name):
  """No two numbers of a tree share a draw, and neither do two keys."""
  add, parameter, dtype = ALL[name]
  setting = {parameter: 2.0}
  value = jax.tree.map(jnp.zeros_like, example(dtype))
  key = jax.random.key(3)
  whole = add(jnp.zeros(tree.size(value), dtype), **setting, key=key)
  np.testing.assert_array_equal(flat(add(value, **setting, key=key)), whole)
  many = jnp.zeros(1000, dtype)
  first = np.asarray(add(many, **setting, key=key), np.float64)
  other = add(many, **setting, key=jax.random.key(4))
  for second in (np.roll(first, 1), np.roll(first, 7), np.asarray(other)):
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(1000)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_noise_does_not_depend_on_the_value(name):
  add, parameter, dtype = ALL[name]
  key = jax.random.key(2)
  value = jnp.arange(512, dtype=dtype)
  plain = add(jnp.zeros_like(value), **{parameter: 64.0}, key=key)
  moved = add(value, **{parameter: 64.0}, key=key)
  np.testing.assert_allclose(moved - value, plain, rtol=0, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_mapping_over_keys_equals_one_by_one(name):
  add, parameter, dtype = ALL[name]
  one = functools.partial(add, example(dtype), **{parameter: 3.0})
  keys = jax.random.split(jax.random.key(0), 5)
  mapped = jax.jit(jax.vmap(lambda key: one(key=key)))(keys)
  for i, key in enumerate(keys):
    expected = flat(one(key=key))
    np.testing.assert_allclose(flat(tree.take(mapped, i)), expected, rtol=1e-6, atol=1e-6)


def test_leaves_of_a_tree_have_noise_of_their_own():
  """Else the difference of two leaves would be released as it is."""
  value = {"a": jnp.zeros(4), "b": jnp.zeros(4)}
  noisy = noise.gaussian(value, sigma=1.0, key=jax.random.key(0))
  assert len(set(flat(noisy).tolist())) == 8


def test_large_leaves_have_noise_of_their_own():
  """They are drawn one by one, each from where the others' counters end."""
  value = {"a": jnp.zeros(5000), "b": jnp.zeros(5000), "c": jnp.zeros(3)}
  noisy = noise.gaussian(value, sigma=1.0, key=jax.random.key(0))
  first, second, last = map(np.asarray, jax.tree.leaves(noisy))
  assert np.abs(np.corrcoef(first, second)[0, 1]) < 6 / np.sqrt(5000)
  assert not set(last.tolist()) & {*first.tolist(), *second.tolist()}


@pytest.mark.parametrize("name", ALL)
def test_keys_are_required_and_single(name):
  add, parameter, dtype = ALL[name]
  value, setting = jnp.zeros(3, dtype), {parameter: 1.0}
  with pytest.raises(TypeError, match="key"):
    add(value, **setting)
  with pytest.raises(checks.ArgumentError, match="must be a random key"):
    add(value, **setting, key=0)
  with pytest.raises(checks.ArgumentError, match="array of 2 keys"):
    add(value, **setting, key=jax.random.split(jax.random.key(0)))
  with pytest.raises(checks.ArgumentError, match="Threefry"):
    add(value, **setting, key=jax.random.key(0, impl="rbg"))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), 1e39])
def test_impossible_parameters_are_refused(name, bad):
  add, parameter, dtype = ALL[name]
  with pytest.raises(checks.ArgumentError, match=re.escape(f"{parameter}={bad}")):
    add(jnp.zeros(3, dtype), **{parameter: bad}, key=jax.random.key(0))


# Continuous noise ----------------------------------------------------------


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_law(name):
  add, parameter, law = CONTINUOUS[name]
  drawn = add(jnp.full(300_000, 5.0), **{parameter: 3.0}, key=jax.random.key(8))
  drawn = (np.asarray(drawn, np.float64) - 5) / 3
  assert stats.kstest(drawn, law.cdf).pvalue > FALSE_ALARM
  cut = law.isf(5e-4)
  seen = np.sum(np.abs(drawn) > cut)
  low, high = stats.binom.interval(1 - FALSE_ALARM, len(drawn), 1e-3)
  assert low <= seen <= high


def test_gaussian_is_the_normal_stream():
  key = jax.random.key(11)
  noisy = noise.gaussian(jnp.zeros(50), sigma=1.0, key=key)
  np.testing.assert_allclose(noisy, _normal.normal(key, (50,)), rtol=1e-5, atol=2.0**-12)


@pytest.mark.slow
def test_laplace_has_its_tails():
  """All 63 bits count: words of zeros give 43.7 scales, not 16."""
  uniform = _random_words.unit_interval(
    _random_words.Words(jnp.zeros(1, jnp.uint32), jnp.zeros(1, jnp.uint32))
  )
  assert -np.log(float(uniform[0])) == pytest.approx(63 * np.log(2), rel=1e-6)
  key = jax.random.key(13)
  words = _random_words.random_words(key, 4000)
  drawn = np.asarray(noise.laplace(jnp.zeros(4000), scale=1.0, key=key))
  uniform = np.asarray(_random_words.unit_interval(words), np.float64)
  np.testing.assert_allclose(np.abs(drawn), -np.log(uniform), rtol=1e-5)
  np.testing.assert_array_equal(drawn > 0, np.asarray(words.high) & 1 == 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUOUS)
def test_sweeps_over_a_traced_scale(name):
  add, parameter, _ = CONTINUOUS[name]
  value, key = jnp.linspace(-1, 1, 40), jax.random.key(2)
  scales = jnp.array([0.0, 0.5, 2.0])
  swept = jax.vmap(lambda s: add(value, **{parameter: s}, key=key))(scales)
  for i, s in enumerate(scales):
    raised = float(s) * (1 + 2.0**-20)  # it may have been rounded down before
    alone = add(value, **{parameter: raised}, key=key)
    np.testing.assert_allclose(swept[i], alone, rtol=1e-6, atol=1e-7)
  np.testing.assert_array_equal(swept[0], value)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_a_known_scale_is_rounded_up(name):
  add, parameter, _ = CONTINUOUS[name]
  value, key = jnp.zeros(20), jax.random.key(3)
  up = np.float32(1.0000001)
  just_above_one = add(value, **{parameter: 1 + 1e-12}, key=key)
  next_float = add(value, **{parameter: float(up)}, key=key)
  np.testing.assert_array_equal(just_above_one, next_float)
  assert (add(value, **{parameter: 1.0}, key=key) != next_float).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUOUS)
def test_a_traced_scale_is_not_below_what_it_was_made_of(name):
  add, parameter, _ = CONTINUOUS[name]
  rng, key = np.random.default_rng(0), jax.random.key(3)
  parts = rng.uniform(0.5, 2.0, (500, 3))
  truth = np.prod(parts, axis=1)
  unit = float(add(jnp.zeros(()), **{parameter: 1.0}, key=key))

  @jax.jit
  def released(a, b, c):
    return add(jnp.zeros(()), **{parameter: a * b * c}, key=key)

  drawn = np.array([released(*map(np.float32, p)) for p in parts], np.float64)
  assert (np.abs(drawn) > truth * abs(unit)).all()


@pytest.mark.slow
def test_short_floats_are_rounded_once_after_the_noise():
  key, rng = jax.random.key(0), np.random.default_rng(0)
  value = jnp.asarray(rng.normal(size=20_000), jnp.bfloat16)
  noisy = noise.gaussian(value, sigma=1.5, key=key)
  assert noisy.dtype == jnp.bfloat16
  whole = noise.gaussian(value.astype(jnp.float32), sigma=1.5, key=key)
  # A last bit of float32 may differ, and tip the rounding of a few.
  assert np.mean(noisy != whole.astype(jnp.bfloat16)) < 1e-3


@pytest.mark.parametrize("name", CONTINUOUS)
def test_numbers_the_noise_cannot_cover_are_refused(name):
  add, parameter, _ = CONTINUOUS[name]
  setting = {parameter: 1.0, "key": jax.random.key(0)}
  for dtype in (jnp.int32, jnp.bool_, jnp.complex64):
    with pytest.raises(checks.ArgumentError, match="cast to float32"):
      add({"a": jnp.zeros(3), "b": jnp.zeros(3, dtype)}, **setting)
  with jax.enable_x64(True), pytest.raises(checks.ArgumentError, match="float64"):
    add(jnp.zeros(3, jnp.float64), **setting)
  with pytest.raises(checks.ArgumentError, match="vmap"):
    add(jnp.zeros(3), **{**setting, parameter: jnp.ones(3)})
  assert add(np.zeros(3), **setting).dtype == jnp.float32
  assert add(1.5, **setting).shape == ()


# Discrete noise ------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("parameter", [0.4, 1.0, 3.3, 40.0])
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_law(name, parameter):
  add, argument = DISCRETE[name]
  count, reach = 200_000, int(12 + 40 * parameter)
  value = jnp.full(count, 7, jnp.int32)
  noisy = add(value, **{argument: parameter}, key=jax.random.key(21))
  drawn = np.asarray(noisy) - 7
  expected = pmf(name, parameter, reach) * count
  seen = np.bincount(drawn + reach, minlength=2 * reach + 1)
  rare = expected < 10
  seen = np.append(seen[~rare], seen[rare].sum())
  expected = np.append(expected[~rare], expected[rare].sum())
  statistic = np.sum((seen - expected) ** 2 / expected)
  assert stats.chi2.sf(statistic, len(seen) - 1) > FALSE_ALARM
  # The variance, against its series; six standard errors.
  law, n = pmf(name, parameter, reach), np.arange(-reach, reach + 1)
  variance, fourth = (law @ n**power for power in (2, 4))
  error = 6 * np.sqrt((fourth - variance**2) / count)
  assert abs(np.mean(drawn.astype(np.float64) ** 2) - variance) < error
  assert abs(np.mean(drawn)) < 6 * np.sqrt(variance / count)


@pytest.mark.parametrize("name", DISCRETE)
def test_tiny_noise_is_none(name):
  add, argument = DISCRETE[name]
  value = jnp.arange(1000)
  same = add(value, **{argument: 1e-3}, key=jax.random.key(0))
  np.testing.assert_array_equal(same, value)


@pytest.mark.parametrize(("add", "name"), [(noise.gaussian, "sigma"), (noise.laplace, "scale")])
@pytest.mark.parametrize("scale", [1e-30, 1e-38, 1e-45])
def test_noise_that_would_vanish_is_refused(add, name, scale):
  """Below 2^-126 the value would be returned as it is."""
  with pytest.raises(checks.ArgumentError, match=f"{name}={scale} .*scale values up"):
    add(jnp.ones(3), **{name: scale}, key=jax.random.key(0))


@pytest.mark.slow
def test_large_sigma_is_nearly_continuous():
  key = jax.random.key(4)
  drawn = noise.discrete_gaussian(np.zeros(100_000, int), sigma=5e3, key=key)
  # The laws differ by less than 1/sigma, the test sees 1e-2.
  assert stats.kstest(np.asarray(drawn) / 5e3, "norm").pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", DISCRETE)
def test_what_is_not_a_count_is_refused(name):
  add, argument = DISCRETE[name]
  setting = {argument: 1.0, "key": jax.random.key(0)}
  for value in (jnp.zeros(3), np.zeros(3), 1.5, np.zeros(2, bool)):
    with pytest.raises(checks.ArgumentError, match="int32 counts"):
      add(value, **setting)
  with pytest.raises(checks.ArgumentError, match="int32 counts"):
    jax.jit(lambda v: add(v, **setting))(jnp.zeros(3, jnp.uint32))


@pytest.mark.slow
@pytest.mark.parametrize("name", DISCRETE)
def test_sums_that_could_leave_int32_are_refused(name):
  add, argument = DISCRETE[name]
  setting = {argument: 1.0, "key": jax.random.key(0)}
  for value in (2**31 - 2, -(2**31), np.array([2**40]), np.uint32(2**31)):
    with pytest.raises(checks.ArgumentError, match=r"privacy\.exact"):
      add(value, **setting)
  assert add(np.array([2**31 - 200]), **setting).dtype == jnp.int32
  assert add(np.uint8(200), **setting) > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", DISCRETE)
def test_the_parameter_of_discrete_noise_is_static(name):
  add, argument = DISCRETE[name]
  key = jax.random.key(0)
  with pytest.raises(checks.ArgumentError, match="known before tracing"):
    jax.vmap(lambda s: add(jnp.arange(3), **{argument: s}, key=key))(jnp.ones(2))
  exact = add(jnp.arange(30), **{argument: Fraction(5, 2)}, key=key)
  np.testing.assert_array_equal(exact, add(jnp.arange(30), **{argument: 2.5}, key=key))


def test_distances_are_negligible_and_grow_with_the_table():
  for distance, argument in (
    (noise.discrete_gaussian_distance, "sigma"),
    (noise.discrete_laplace_distance, "scale"),
  ):
    small, large = (distance(**{argument: s}) for s in (1, 100))
    assert 0 < small < large < 2.0**-100
