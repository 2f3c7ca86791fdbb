"""Sums of clipped per-example gradients, at nearly the cost of plain ones."""

import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair import _jaxpr, checks, tree
from jaxfair.privacy import _factor_norms, _factors, _one_pass, _pass_choice, _taps, _two_pass
from jaxfair.privacy._clip_factors import RULES, ClipRule, weights_of
from jaxfair.types import Array, Examples, Model, Number, Params, PerExampleLoss, PyTree

Method = Literal["auto", "ghost", "two_pass", "vmap"]
METHODS: tuple[Method, ...] = ("auto", "ghost", "two_pass", "vmap")


class Clipped(NamedTuple):
  """A sum of clipped gradients, before any noise.

  Attributes:
    total: sum over the examples; the tree of the parameters.
    norms: [n] gradient norms before clipping (0 where masked or non-finite).
      Not private: computed from each example alone, without noise.
    num_nonfinite: how many examples had a non-finite gradient and were left out. Not private.
  """

  total: Params
  norms: jax.Array
  num_nonfinite: jax.Array


class SlowClippingWarning(UserWarning):
  """A parameter for which no fast clipping rule is known."""


@dataclasses.dataclass(frozen=True)
class ClippedGrad:
  """The function `clipped_grad` returns; it carries its own sensitivity."""

  model: Model
  loss: PerExampleLoss
  l2_clip: Number
  method: Method
  per_layer: bool
  microbatch: int | None
  rule: ClipRule

  @property
  def sensitivity(self) -> PyTree:
    """L2 distance of `total` when one example is added, removed or masked."""
    return self.l2_clip

  def weights(
    self,
    squared: jax.Array,
    largest: jax.Array,
    params: Params,
    mask: jax.Array,
    finite: jax.Array,
    bounds: jax.Array | None = None,
  ) -> tuple[jax.Array, jax.Array, jax.Array]:
    """[leaves, n] clip factors, [n] norms, and [n] which are non-finite; see `weights_of`."""
    return weights_of(
      squared,
      largest,
      params,
      l2_clip=self.l2_clip if bounds is None else jnp.minimum(bounds, self.l2_clip),
      per_layer=self.per_layer,
      rule=self.rule,
      mask=mask,
      finite=finite,
    )

  def __call__(self, params: Params, examples: Examples, mask: jax.Array | None = None) -> Clipped:
    """Clips each example's gradient and adds them up.

    Args:
      params: the parameters at which the gradient is taken.
      examples: the batch.
      mask: [n] which examples take part; all by default. Sampling with a
        static shape puts its padding here.
    """
    return self.with_losses(params, examples, mask)[0]

  def with_losses(
    self,
    params: Params,
    examples: Examples,
    mask: jax.Array | None = None,
    finite: jax.Array | None = None,
    bounds: jax.Array | None = None,
  ) -> tuple[Clipped, jax.Array]:
    """Like a call, and also returns the [n] per-example losses (not private).

    Args:
      params: the parameters at which the gradient is taken.
      examples: the batch.
      mask: [n] which examples take part.
      finite: what `zero_broken` told of these examples, if it was applied to
        them before; saves looking at them again in every step.
      bounds: [n] a bound of each example's own in place of `l2_clip`, which stays the
        sensitivity: a larger one counts as `l2_clip`.
    """
    refuse_64_bit_mode()
    params, examples = jax.tree.map(jnp.asarray, (params, examples))
    _check_precision(params)
    if mask is None:
      mask = jnp.ones(examples.x.shape[0], bool)
    if finite is None:
      examples, finite = zero_broken(examples)
    work = _vmap_sum if self.method == "vmap" else _read_sum
    return work(self, params, examples, mask, finite, bounds)


def clipped_grad(
  model: Model,
  loss: PerExampleLoss,
  *,
  l2_clip: Number,
  method: Method = "auto",
  per_layer: bool = False,
  microbatch: int | None = None,
  rule: ClipRule = "clip",
) -> ClippedGrad:
  """Makes a function that sums clipped per-example gradients.

  total = sum_i g_i min(1, l2_clip / ||g_i||),  g_i = grad loss(example i)

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    l2_clip: bound on the norm of one example's contribution.
    method: "ghost" takes norms and sums from activations and back-propagated signals of one
      backward pass. "two_pass" takes norms in a first pass and sums in a second one: about twice
      the time, and hardly more memory than the plain gradient takes. "auto" chooses between them
      by the memory that "ghost" would need. "vmap" computes every per-example gradient.
    per_layer: clips each layer's gradient separately, to `l2_clip / sqrt(number of layers)`.
    microbatch: for "vmap", how many gradients are in memory at once; None chooses.
    rule: "clip" as above. "normalize" (automatic clipping) sums g_i l2_clip / (||g_i|| + 0.01):
      all but very small gradients get nearly the norm of the bound. "drop" leaves out gradients
      beyond the bound and keeps the others, so that the sum keeps its direction if none is
      beyond the bound.

  Returns:
    A callable `(params, examples, mask=None) -> Clipped` whose `.sensitivity`
    is the L2 sensitivity of `total`.

  Privacy:
    Adding or removing one example moves `total` by at most `l2_clip`, by every rule.
    Replacing one moves it by at most twice that. Examples with a non-finite
    gradient contribute nothing, so their presence moves nothing.

  Reference:
    Goodfellow 2015 and Lee and Kifer 2021 for norms from activations. The sums of "ghost" need no
    second backward pass: they are contractions of the same factors. Bu, Wang, Zha and Karypis 2023
    for "normalize"; Bu, Wang, Long and Su 2021 for "drop".
  """
  refuse_64_bit_mode()
  checks.positive("l2_clip", l2_clip)
  checks.one_of("method", method, METHODS)
  checks.one_of("rule", rule, RULES)
  if microbatch is not None:
    checks.integer("microbatch", microbatch, low=1)
  return ClippedGrad(model, loss, l2_clip, method, per_layer, microbatch, rule)


def zero_broken(examples: Examples) -> tuple[Examples, jax.Array]:
  """Examples with the features of non-finite ones set to zero, and [n] which.

  Their gradients are then finite but meaningless: code that sums gradients must leave these
  examples out, as `ClippedGrad` does.
  """
  x = examples.x
  if not jnp.issubdtype(x.dtype, jnp.inexact):
    return examples, jnp.ones(x.shape[0], bool)
  finite = jnp.all(jnp.isfinite(x), axis=tuple(range(1, x.ndim)))
  mask = finite.reshape(finite.shape + (1,) * (x.ndim - 1))
  return examples._replace(x=jnp.where(mask, x, jnp.zeros((), x.dtype))), finite


def refuse_64_bit_mode() -> None:
  """Raises under `jax_enable_x64`: clipping and noise are float32."""
  checks.require(
    jnp.result_type(float) == jnp.float32,
    "jax_enable_x64 is on, but clipping and noise work in float32; turn it "
    "off around them: with jax.enable_x64(False)",
  )


def refuse_debug_errors() -> None:
  """Raises where JAX would end a release because of one person's broken record.

  That it ended would reveal the record; left out and counted, it affects nothing else.
  """
  for name in ("jax_debug_nans", "jax_debug_infs"):
    checks.require(
      not getattr(jax.config, name),
      f"{name} is on, so a single broken record would end a release, which reveals it; turn it off "
      f"for the release: jax.config.update({name!r}, False)",
    )


def _check_precision(params: Params) -> None:
  """Raises for short floats: their rounding is above the margin, 2^-9 for one."""
  leaves = jax.tree.leaves(params)
  checks.require(bool(leaves), "params hold no arrays, so nothing is clipped")
  for leaf in leaves:
    checks.require(
      jnp.issubdtype(leaf.dtype, jnp.floating),
      f"params hold {leaf.dtype} numbers, which have no clipped gradient; keep "
      "parameters in float32, and other numbers outside of params",
    )
    checks.require(
      leaf.dtype == jnp.float32,
      f"params hold {leaf.dtype} numbers, whose precision is too low to keep a clipped "
      "gradient within its bound; keep them in float32 (the model may compute in lower "
      "precision)",
    )


def _one_loss(model: Model, loss: PerExampleLoss, params: Params, x: Array, y: Array) -> jax.Array:
  losses = loss(model.apply(params, x[None]), y[None])
  if jnp.shape(losses) != (1,):
    raise checks.ArgumentError(
      f"loss returned shape {jnp.shape(losses)} for one example; it must "
      "return one number per example, not their mean or sum"
    )
  return losses[0]


def _read_sum(
  spec: ClippedGrad,
  params: Params,
  examples: Examples,
  mask: jax.Array,
  finite: jax.Array,
  bounds: jax.Array | None,
) -> tuple[Clipped, jax.Array]:
  """From a reading of the program, in one pass or two."""
  leaves, treedef = jax.tree.flatten(params)
  batch = (examples.x, examples.y)

  def function(values: list[Any], one: PyTree) -> jax.Array:
    tree_ = jax.tree.unflatten(treedef, values)
    return _one_loss(spec.model, spec.loss, tree_, *one)

  one = jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape[1:], v.dtype), batch)
  reading = _taps.read(function, leaves, one)
  two = _pass_choice.takes_two(spec.method, reading, mask.shape[0])
  if reading.short_rows or (two and _jaxpr.has_short_rows(reading.program)):
    # All derivatives of the second pass are JAX's own.
    reading = _taps.read(_jaxpr.with_wide_rows(function), leaves, one)
    _refuse_short_rows(reading.short_rows or (two and _jaxpr.has_short_rows(reading.program)))
  _warn_slow(sorted(reading.whole), params)

  def weigh(squared: jax.Array, largest: jax.Array) -> PyTree:
    return spec.weights(squared, largest, params, mask, finite, bounds)

  def one_pass(leaves: list[jax.Array], batch: PyTree) -> _one_pass.Sums:
    return _one_pass.one_pass_sums(reading, leaves, batch, weigh)

  if two:
    found = _two_pass.two_pass_sums(reading, leaves, batch, weigh)
  else:  # two passes are for memory, of which the largest networks need less as they are
    found = _jaxpr.without_unit_axes(one_pass)(leaves, batch)
  total = jax.tree.unflatten(treedef, found.totals)
  return Clipped(total, found.norms, jnp.sum(found.bad & mask)), found.losses


def _vmap_sum(
  spec: ClippedGrad,
  params: Params,
  examples: Examples,
  mask: jax.Array,
  finite: jax.Array,
  bounds: jax.Array | None,
) -> tuple[Clipped, jax.Array]:
  function: Callable[..., Any] = functools.partial(_one_loss, spec.model, spec.loss)
  one = (jax.ShapeDtypeStruct(v.shape[1:], v.dtype) for v in (examples.x, examples.y))
  program = jax.make_jaxpr(function)(params, *one)
  if _jaxpr.has_short_rows(program):
    _refuse_short_rows(_jaxpr.has_short_rows(program, inside=False))
    function = _jaxpr.with_wide_rows(function)
  value_and_grad = jax.vmap(jax.value_and_grad(function), in_axes=(None, 0, 0))

  def some(x: PyTree, y: PyTree, mask: jax.Array, finite: jax.Array, bounds: PyTree) -> PyTree:
    losses, grads = value_and_grad(params, x, y)
    leaves = jax.tree.leaves(grads)
    kept: list[list[_factors.Part]] = [[_factors.Whole(g)] for g in leaves]
    squared = _one_pass.squared_norms(kept, mask.shape[0])
    largest = _factor_norms.largest_norms(kept, squared)
    weights, norms, bad = spec.weights(squared, largest, params, mask, finite, bounds)
    totals = [
      _factors.weighted_sum([_factors.Whole(_factors.zero_where(bad, g, 1))], w, g[0])
      for g, w in zip(leaves, weights, strict=True)
    ]
    total = jax.tree.unflatten(jax.tree.structure(params), totals)
    return total, norms, jnp.sum(bad & mask), losses

  n = examples.x.shape[0]
  micro = max(1, min(spec.microbatch or _default_microbatch(params), n))
  blocks = -(-n // micro)
  padded = jax.tree.map(
    lambda v: jnp.pad(v, [(0, blocks * micro - n)] + [(0, 0)] * (v.ndim - 1)).reshape(
      blocks, micro, *v.shape[1:]
    ),
    (examples.x, examples.y, mask, finite, bounds),
  )

  def add_block(total: PyTree, block: PyTree) -> PyTree:
    more, norms, count, losses = some(*block)
    return tree.add(total, more), (norms, count, losses)

  total, (norms, counts, losses) = jax.lax.scan(add_block, tree.zeros_like(params), padded)
  clipped = Clipped(total, norms.reshape(-1)[:n], jnp.sum(counts))
  return clipped, losses.reshape(-1)[:n]


def _refuse_short_rows(left: bool) -> None:
  """Raises if short row numbers are left with which JAX's derivative of a look-up is wrong."""
  checks.require(
    not left,
    "the model looks up rows, in a loop or branch, by 8- or 16-bit ids that cannot index the "
    "last row of the table; convert them to int32 first",
  )


def _default_microbatch(params: Params) -> int:
  """About 256 MB of per-example gradients at once."""
  return max(1, 2**26 // max(1, tree.size(params)))


def _warn_slow(whole: list[int], params: Params) -> None:
  named = jax.tree_util.tree_leaves_with_path(params)
  slow = [jax.tree_util.keystr(named[leaf][0]) for leaf in whole if named[leaf][1].size]
  if not slow:
    return
  names = ", ".join(slow)
  warnings.warn(
    f"no fast clipping rule for {names}: gradients of these parameters are computed per "
    "example, which takes more memory and time",
    SlowClippingWarning,
    stacklevel=2,
  )
