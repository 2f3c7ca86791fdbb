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
  *rows_pad, (low, high) = padding
  reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
  out = [
    (size + sum(pad) - span) // stride + 1
    for size, pad, span, stride in zip(images.shape[2:-1], padding, reach, strides, strict=True)
  ]
  # Neighboring columns lie side by side in memory: as many as the window
  # moves by are copied as one.
  run = strides[-1] if dilation[-1] == 1 else 1
  step = strides[-1] // run
  width, channels = images.shape[-2:]
  blocks = (step * (out[-1] - 1)) + -(-reach[-1] // run)
  high = max(high, blocks * run - width - low)
  pads = [*rows_pad, (low, high)]
  padded = jax.lax.pad(
    images,
    jnp.zeros((), images.dtype),
    [(0, 0, 0)] * 2 + [(lo, hi, 0) for lo, hi in pads] + [(0, 0, 0)],
  )
  columns = padded[..., : blocks * run, :].reshape(*padded.shape[:-2], blocks, run * channels)
  views = []
  for *offset, at in itertools.product(*(range(k) for k in kernel[:-1]), range(0, kernel[-1], run)):
    first = [o * d for o, d in zip(offset, dilation[:-1], strict=True)]
    first.append(at * dilation[-1] // run)
    last = [f + (o - 1) * s + 1 for f, o, s in zip(first, out, [*strides[:-1], step], strict=True)]
    taken = min(run, kernel[-1] - at) * channels
    views.append(
      jax.lax.slice(
        columns,
        (0, 0, *first, 0),
        (*columns.shape[:2], *last, taken),
        (1, 1, *strides[:-1], step, 1),
      )
    )
  return jnp.concatenate(views, axis=-1)
