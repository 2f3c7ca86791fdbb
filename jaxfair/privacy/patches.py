"""Image patches: what each position of a convolution looks at."""

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp


def extract(
  images: jax.Array,
  kernel: Sequence[int],
  *,
  strides: Sequence[int],
  padding: Sequence[tuple[int, int]],
  dilation: Sequence[int],
) -> jax.Array:
  """Lays out a convolution's inputs as rows of a matrix.

  A convolution is then `patches @ kernel.reshape(fan_in, channels_out)`.
  Strided slices do it: an identity convolution, the usual way, is slow on CPU.

  Args:
    images: [n, batch, *spatial, channels].
    kernel: spatial size of the kernel.
    strides: of the window.
    padding: (low, high) per spatial axis.
    dilation: of the kernel.

  Returns:
    [n, batch, *output_spatial, fan_in] with fan_in ordered as
    (*kernel, channels).
  """
  pads = [(0, 0, 0)] * 2 + [(lo, hi, 0) for lo, hi in padding] + [(0, 0, 0)]
  padded = jax.lax.pad(images, jnp.zeros((), images.dtype), pads)
  spatial = padded.shape[2:-1]
  reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
  out = [
    (size - span) // stride + 1
    for size, span, stride in zip(spatial, reach, strides, strict=True)
  ]
  views = []
  for offset in itertools.product(*(range(k) for k in kernel)):
    first = [o * d for o, d in zip(offset, dilation, strict=True)]
    last = [
      f + (o - 1) * s + 1 for f, o, s in zip(first, out, strides, strict=True)
    ]
    views.append(
      jax.lax.slice(
        padded,
        (0, 0, *first, 0),
        (*padded.shape[:2], *last, padded.shape[-1]),
        (1, 1, *strides, 1),
      )
    )
  stacked = jnp.stack(views, axis=-2)
  return stacked.reshape(*stacked.shape[:-2], -1)
