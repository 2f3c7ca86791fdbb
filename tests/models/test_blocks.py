import flax.linen as nn
import jax
import numpy as np
import pytest

from jaxfair import checks
from jaxfair.models import _blocks


def normal(*shape):
  return np.random.default_rng(0).standard_normal(shape, np.float32)


def group_norm(x, scale=None, bias=None):
  channels = x.shape[-1]
  params = {
    "scale": np.ones(channels, np.float32) if scale is None else scale,
    "bias": np.zeros(channels, np.float32) if bias is None else bias,
  }
  return np.asarray(jax.jit(_blocks.GroupNorm().apply)({"params": params}, x))


@pytest.mark.slow
@pytest.mark.parametrize("channels", [4, 12, 64, 96])
def test_group_norm_equals_flax(channels):
  x = 3 * normal(3, 5, 4, channels) + 1
  params = {
    "scale": np.linspace(-1, 2, channels, dtype=np.float32),
    "bias": np.linspace(0, 1, channels, dtype=np.float32),
  }
  theirs = nn.GroupNorm(num_groups=_blocks.num_groups(channels), epsilon=1e-5)
  theirs = jax.jit(theirs.apply)({"params": params}, x)
  ours = group_norm(x, **params)
  np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_group_norm_of_a_far_mean_is_exact():
  """The variance is taken around the mean, so nothing cancels."""
  x = 1000 + normal(2, 4, 4, 8)
  y = group_norm(x)
  exact = np.asarray(x, np.float64).reshape(2, 4, 4, 2, 4)
  exact = exact - exact.mean((1, 2, 4), keepdims=True)
  exact /= np.sqrt((exact**2).mean((1, 2, 4), keepdims=True) + 1e-5)
  np.testing.assert_allclose(y, exact.reshape(y.shape), atol=1e-3)


def test_group_norm_keeps_maps_of_one_pixel_apart():
  assert np.std(group_norm(normal(2, 1, 1, 4))) > 0.5


@pytest.mark.parametrize(
  ("channels", "groups"), [(2, 1), (4, 1), (8, 2), (12, 3), (20, 5), (64, 16), (96, 24), (2048, 32)]
)
def test_number_of_groups(channels, groups):
  assert _blocks.num_groups(channels) == groups


def test_widths_are_multiples_of_four():
  assert _blocks.check_width(8) == 8
  with pytest.raises(checks.ArgumentError, match="multiple of 4; use 12"):
    _blocks.check_width(10)
  with pytest.raises(checks.ArgumentError, match="at least 4"):
    _blocks.check_width(0)


@pytest.mark.parametrize(
  ("side", "kernel", "stride", "padding"),
  [(2, 3, 1, 1), (1, 3, 1, "SAME"), (3, 3, 2, 1), (4, 3, 1, "VALID")],
)
def test_small_maps_take_a_product_for_the_convolution(side, kernel, stride, padding):
  x = normal(5, side, side, 4)
  module = _blocks.conv(6, kernel, stride, padding=padding)
  params = module.init(jax.random.key(0), x)
  program = str(jax.make_jaxpr(module.apply)(params, x))
  assert "conv_general_dilated" not in program
  sides = [(padding, padding)] * 2 if isinstance(padding, int) else padding
  weights = params["params"]["kernel"]
  expected = jax.lax.conv_general_dilated(
    x, weights, (stride, stride), sides, dimension_numbers=("NHWC", "HWIO", "NHWC")
  )
  np.testing.assert_allclose(module.apply(params, x), expected, atol=1e-5)


def test_larger_maps_stay_convolutions():
  x, module = normal(2, 3, 3, 4), _blocks.conv(6, 3)
  params = module.init(jax.random.key(0), x)
  program = str(jax.make_jaxpr(module.apply)(params, x))
  assert "conv_general_dilated" in program
