"""Patches: a convolution is a matrix product of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair.models import _patches


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [(3, 3), (1, 1), (2, 5)])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (1, 3)])
@pytest.mark.parametrize("padding", ["SAME", "VALID", ((2, 1), (0, 3))])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 1), (1, 2)])
def test_convolution_is_a_product_of_patches(kernel, strides, padding, dilation):
  key_image, key_kernel = jax.random.split(jax.random.key(0))
  images = jax.random.normal(key_image, (2, 11, 12, 3))
  weights = jax.random.normal(key_kernel, (*kernel, 3, 4))
  expected = jax.lax.conv_general_dilated(
    images,
    weights,
    strides,
    padding,
    rhs_dilation=dilation,
    dimension_numbers=("NHWC", "HWIO", "NHWC"),
  )
  if isinstance(padding, str):
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    padding = jax.lax.padtype_to_pads((11, 12), reach, strides, padding)
  found = _patches.extract(
    images[None], kernel, strides=strides, padding=padding, dilation=dilation
  )
  product = found[0] @ weights.reshape(-1, 4)
  np.testing.assert_allclose(product, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_one_dimensional_signals():
  signal = jnp.arange(5.0).reshape(1, 1, 5, 1)
  found = _patches.extract(signal, (3,), strides=(1,), padding=((1, 1),), dilation=(1,))
  np.testing.assert_array_equal(
    found[0, 0], [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 0]]
  )
