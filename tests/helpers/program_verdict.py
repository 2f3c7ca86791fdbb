"""Whether clipping keeps its promises on a program of `program_zoo`.

What each person contributes to clipped sums is compared with float64 gradients
of the same program.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from helpers import quick_compile
from helpers.program_zoo import Case, Program
from jaxfair import checks
from jaxfair.privacy._clip_factors import layer_ids
from jaxfair.privacy._clipping import SlowClippingWarning, clipped_grad
from jaxfair.types import Examples, Model

# Clipped gradients are shortened by what rounding may have hidden of the norm:
# half of 2^-24 for every number that is summed for it, of which the tallest
# table here has 65,537; more where positions cancel.
SHORTENED = 2.0**-8
# A person's part may exceed the bound by what one float32 sum rounds.
EXCESS = 1e-6


class Verdict(NamedTuple):
  """How one program went.

  Attributes:
    excess: largest norm of anybody's part over the bound, minus 1.
    apart: largest distance from the float64 gradient, relative.
    failures: what is wrong; empty if nothing is.
    refused: the message, if the program was refused.
  """

  excess: float
  apart: float
  failures: tuple[str, ...]
  refused: str = ""


@np.errstate(over="ignore", invalid="ignore")
def judge(program: Program) -> Verdict:
  """Runs a program on all its cases; see `Verdict`."""
  sums, reference = _compile_sums(program), _compile_reference(program)
  try:
    found = [_judge(program, case, reference(case), sums) for case in program.cases]
  except checks.ArgumentError as refusal:
    return Verdict(0.0, 0.0, (), str(refusal))
  return Verdict(
    max(v.excess for v in found),
    max(v.apart for v in found),
    tuple(failure for v in found for failure in v.failures),
  )


def _loss(values: Any, y: Any) -> Any:
  del y
  return values


def _compile_sums(program: Program) -> Callable[[Case, float], Any]:
  """(case, clip) -> totals under every mask, and the norms.

  Masks: each person alone, everybody, everybody but one. Leaves of the totals
  are [2, masks, ...], the first of the two not clipped.
  """
  model = Model(lambda key, x: None, program.apply)

  @functools.partial(jax.jit, compiler_options=quick_compile.OPTIONS)
  def run(params: Any, examples: Examples, masks: Any, clips: Any) -> Any:
    def total(clip: Any, mask: Any) -> Any:
      found = clipped_grad(model, _loss, l2_clip=clip, **program.options)(params, examples, mask)
      return found.total, found.norms

    each = jax.vmap(total, in_axes=(None, 0))
    return jax.vmap(each, in_axes=(0, None))(clips, masks)

  def sums(case: Case, clip: float) -> tuple[Any, np.ndarray]:
    count = len(case.x)
    one, ids = np.eye(count, dtype=bool), np.arange(count, dtype=np.int32)
    masks = np.concatenate([one, np.ones((1, count), bool), ~one])
    with warnings.catch_warnings():
      warnings.simplefilter("ignore", SlowClippingWarning)
      totals, norms = run(
        case.params, Examples(case.x, ids, ids), masks, np.array([1e30, clip], np.float32)
      )
    wide = jax.tree.map(lambda v: np.asarray(v, np.float64), totals)
    return wide, np.asarray(norms)[0, count]

  return sums


def _compile_reference(program: Program) -> Callable[[Case], Any]:
  """case -> [n, ...] per-example gradients: of the program run in float64, and as it is.

  Row numbers become int64: in a short type, JAX's own gradient of a look-up
  loses rows of tables that are taller than the type reaches, or writes outside
  of them.
  """

  def loss(p: Any, row: Any) -> Any:
    return program.apply(p, row[None])[0]

  # One after the other: nobody's numbers can reach another's.
  @functools.partial(jax.jit, compiler_options=quick_compile.OPTIONS)
  def gradient(params: Any, x: Any) -> Any:
    return jax.lax.map(functools.partial(jax.grad(loss), params), x)

  def reference(case: Case) -> Any:
    x = case.x
    if x.dtype == np.float32:
      x = x.astype(np.float64)
    elif x.dtype.kind in "iu":
      x = x.astype(np.int64)
    with jax.enable_x64(True):
      params = jax.tree.map(np.float64, case.params)
      exact = jax.device_get(gradient(params, x))
    if not program.short and x.dtype.kind not in "iu":
      return exact, exact
    # What the program rounds away itself is no mistake of clipping, and by
    # short row numbers JAX's float64 gradient loses rows that this one keeps.
    own = gradient(case.params, case.x.astype(np.int32) if x.dtype.kind in "iu" else case.x)
    return exact, jax.tree.map(lambda v: np.asarray(v, np.float64), own)

  return reference


def _norms(stacked: Any, groups: tuple[int, ...], axes: int) -> np.ndarray:
  """[groups, ...] norms; the first `axes` axes of the leaves remain."""
  leaves = jax.tree.leaves(stacked)
  squares = [np.sum(v.reshape(*v.shape[:axes], -1) ** 2, axis=-1) for v in leaves]
  total = np.zeros((max(groups) + 1, *squares[0].shape))
  for group, square in zip(groups, squares, strict=True):
    total[group] += square
  return np.sqrt(total)


def _weighted(stacked: Any, factor: np.ndarray, groups: tuple[int, ...]) -> Any:
  """Leaves [n, ...] times the factors [groups, n] of their groups."""
  leaves, structure = jax.tree.flatten(stacked)
  found = [
    v * factor[g].reshape(-1, *(1,) * (v.ndim - 1)) for v, g in zip(leaves, groups, strict=True)
  ]
  return jax.tree.unflatten(structure, found)


def _judge(
  program: Program, case: Case, references: tuple[Any, Any], sums: Callable[..., Any]
) -> Verdict:
  reference, own = references
  leaves = len(jax.tree.leaves(reference))
  layer = (0,) * leaves
  if program.options["per_layer"]:
    layer = layer_ids(case.params)
  norm = functools.partial(_norms, groups=(0,) * leaves)
  sizes = norm(reference, axes=1)[0]
  sound = np.isfinite(sizes) & (sizes < 1e15)
  if case.x.dtype.kind not in "iu":
    flat = case.x.reshape(len(sizes), -1).astype(np.float64)
    sound &= (np.abs(flat) < 1e6).all(axis=1)  # the sine of 1e30 is anything
  middle = float(np.median(sizes[sound])) if sound.any() else 1.0
  clip = np.float32(case.tightness * middle or 1.0)
  totals, norms = sums(case, float(clip))
  count, failures = len(sizes), []

  def part(which: int, masks: Any) -> Any:
    return jax.tree.map(lambda v: v[which][masks], totals)

  alone, everybody = slice(count), slice(count, count + 1)
  without = slice(count + 1, None)
  plain, clipped = part(0, alone), part(1, alone)
  # 1. The bound: alone, and as what everybody's sum changes by.
  share = float(clip) / np.sqrt(max(layer) + 1)
  change = jax.tree.map(np.subtract, part(1, everybody), part(1, without))
  excess = max(float(np.max(_norms(v, layer, 1))) / share - 1 for v in (clipped, change))
  if not excess <= EXCESS:
    failures.append(f"the bound is exceeded by {excess:.3g}")
  # 2. Nobody who is not finite moves anything; nobody else is left out.
  if np.any(norm(clipped, axes=1)[0][~sound & ~np.isfinite(sizes)]):
    failures.append("a person whose gradient is not finite contributes")
  scale = sizes + middle + 1e-3  # the numbers inside are of order 1
  off = norm(jax.tree.map(np.subtract, plain, reference), axes=1)[0]
  off = np.fmin(off, norm(jax.tree.map(np.subtract, plain, own), axes=1)[0])
  # 3. Before the clip it is the gradient: of float32, or of 8 or 11 digits.
  close = 0.05 if program.short else 2e-4
  apart = float(np.max((off / scale)[sound], initial=0.0))
  if not apart <= close:
    failures.append(f"{apart:.3g} apart from the float64 gradient")
  off = np.fmin(np.abs(norms - sizes), np.abs(norms - norm(own, axes=1)[0])) / scale
  if not np.max(off[sound], initial=0.0) <= close:
    failures.append("the norm told is another")
  # 4. Behind the clip it is that, times its factor or a little less.
  lengths = _norms(plain, layer, 1)
  factor = np.minimum(1.0, share / np.maximum(lengths, 1e-300))
  goal = _weighted(plain, factor, layer)
  off = norm(jax.tree.map(np.subtract, clipped, goal), axes=1)[0]
  if not np.all(off <= SHORTENED * norm(goal, axes=1)[0] + 1e-30):
    failures.append(f"clipped gradients are off by {np.max(off):.3g}")
  # 5. A sum is the sum of its parts.
  for rows, kept in ((everybody, np.ones((1, count))), (without, 1 - np.eye(count))):
    goal = jax.tree.map(functools.partial(np.tensordot, kept, axes=1), clipped)
    off = norm(jax.tree.map(np.subtract, part(1, rows), goal), axes=1)[0]
    if not np.all(off <= 1e-6 * count * clip):
      failures.append(f"a sum is off by {np.max(off) / clip:.3g} of the bound")
  return Verdict(excess, apart, tuple(failures))
