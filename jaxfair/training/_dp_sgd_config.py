"""Settings of DP-SGD, and what they cost."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxfair import accounting, checks, models
from jaxfair.models import _coupling
from jaxfair.privacy._adaptive import SMALLEST, QuantileClip
from jaxfair.privacy._banded_sampling import BandedSampler
from jaxfair.privacy._bands import band_weights
from jaxfair.privacy._clip_factors import ClipRule
from jaxfair.privacy._clipping import Method, refuse_64_bit_mode
from jaxfair.privacy._sampling import PoissonSampler
from jaxfair.privacy._sharded_sampling import ShardedSampler
from jaxfair.training import _batches, _driver, _regularizers
from jaxfair.training._group_rules import GroupClip, GroupParity
from jaxfair.training._optimizers import Optimizer, check_optimizer
from jaxfair.training._program import settings
from jaxfair.training._recipes import Augmentation
from jaxfair.training._regularizers import Penalty, UncoveredError
from jaxfair.training._streaming import is_absent
from jaxfair.types import Examples, Model, Number, PerExampleLoss


@settings("learning_rate", "l2_clip", "noise_multiplier", "weight_decay", "penalties")
class DpSgdConfig:
  """Settings of DP-SGD.

  The first four fields are numbers that may be traced: stacked values are
  swept by `fit_many` in one program. The others fix the program's shape.

  Attributes:
    learning_rate: passed to the optimizer, if that is a function of it.
    l2_clip: bound C on the norm of one person's gradient (where it starts, if `adaptive`).
    noise_multiplier: standard deviation of the noise over C; 0 trains without
      privacy, and there is no event then.
    weight_decay: adds weight_decay / 2 ||theta||^2 to the objective; depends
      on the parameters alone, so it costs nothing.
    steps: number of batches.
    batch_size: expected batch size; each person takes part in a step with
      probability batch_size / n.
    max_batch: public cap on a batch; None chooses one that is practically never reached.
    shards: number of blocks of people that are sampled separately, so that the devices of a mesh
      can share a training; 64 suits most meshes, and any number of devices that divides it gives
      the same result up to rounding. `max_batch` is then the cap on the sample of one shard. None
      draws everybody at once, which takes one device.
    bands: number of steps that share their noise, which reduces it for large epsilon and small
      batches; see docs/private_training.md. People are assigned to that many parts
      at random, and steps draw from one part after the other. It keeps 2 (bands - 1) copies of the
      parameters in memory. 1 adds independent noise to every step.
    optimizer: a function of the learning rate, such as `optax.adamw`, whose rate can be swept; or
      any optax object, such as `optax.adamw(schedule)`, and `learning_rate` is not used then.
    method: how gradients are clipped; see `privacy.clipped_grad`.
    per_layer: clips each layer separately.
    rule: "clip" scales gradients beyond the bound down to it; "normalize" scales nearly all of them
      to the bound, so that the bound only scales the learning rate; "drop" leaves out those beyond
      the bound. See `privacy.clipped_grad`.
    rescale: multiplies the private gradient by the initial clip bound over the current one: an
      `adaptive` bound then determines which gradients are clipped, not the length of steps.
    adaptive: moves the clip bound towards a private quantile of the norms.
    group_rule: how a step treats groups differently: `GroupClip` gives each its own clip bound,
      `GroupParity` keeps their rates of predictions close.
    augment: another view of one person's features, `(x, key) -> x`, such as `FlipAndShift()`.
    views: number of views of a person that a step averages before the clip.
    chunk_size: number of examples of a batch that are processed together; None processes all.
      With it, memory does not grow with the batch size.
    average: decay of a running mean of the parameters, which is returned instead of the last ones;
      0.9 to 0.999. None returns the last ones.
    loop: "scan", "step" or "auto", which chooses the faster one for model and backend.
    penalties: terms of the objective added after clipping and noise (or inside the clip, if they
      say so), such as `risk_penalty` or `parity_penalty`. Their weights may be swept too.
  """

  learning_rate: Number = 0.1
  l2_clip: Number = 1.0
  noise_multiplier: Number = 1.0
  weight_decay: Number = 0.0
  steps: int = 1000
  batch_size: int = 256
  max_batch: int | None = None
  shards: int | None = None
  bands: int = 1
  optimizer: Optimizer = optax.sgd
  method: Method = "auto"
  per_layer: bool = False
  rule: ClipRule = "clip"
  rescale: bool = False
  adaptive: QuantileClip | None = None
  group_rule: GroupClip | GroupParity | None = None
  augment: Augmentation | None = None
  views: int = 1
  chunk_size: int | None = None
  average: float | None = None
  loop: _driver.Loop = "auto"
  penalties: tuple[Penalty, ...] = ()

  def check(self, model: Model, loss: PerExampleLoss, examples: Examples) -> None:
    """Raises, before any work, if private training with these settings is impossible.

    Non-finite examples are not refused, because a refusal would reveal that somebody's record is
    broken. They contribute nothing.
    """
    check_optimizer(self)
    checks.positive("l2_clip", self.l2_clip)
    checks.non_negative("noise_multiplier", self.noise_multiplier)
    if checks.concrete(self.noise_multiplier) and np.any(self.noise_multiplier):
      vanishes = "noise in proportion to it vanishes in float32"
      checks.number("l2_clip", self.l2_clip, low=SMALLEST, remedy=vanishes)
    _regularizers.check(self, model)
    checks.integer("steps", self.steps, low=1)
    checks.integer("views", self.views, low=1)
    checks.require(
      self.views == 1 or self.augment is not None,
      f"views={self.views} of a person are the same without augment; pass augment=..., or views=1",
    )
    if self.chunk_size is not None:
      checks.integer("chunk_size", self.chunk_size, low=1)
    if self.average is not None:
      checks.number("average", self.average, low=0.0, high=1.0, open_high=True)
    size = checks.people(examples)
    if self.group_rule is not None:
      checks.require(
        not is_absent(examples),
        "group_rule checks the groups of all people before the first step; pass Examples, or leave "
        "group_rule out for a Source",
      )
      checks.ids("group", examples.group, self.group_rule.num_groups)
      checks.require(
        np.ndim(examples.y) == 1 and jnp.result_type(examples.y).kind in "biu",
        "group_rule is for class ids, and y holds other values; pass whole numbers, [n]",
      )
    self.sampler(size)
    check_per_example(model, loss, examples)

  def sampler(
    self, num_examples: int, delta_share: float = _batches.DEFAULT_DELTA_SHARE
  ) -> PoissonSampler | ShardedSampler | BandedSampler:
    """The sampler this config trains with on n examples."""
    checks.integer("bands", self.bands, low=1)
    checks.require(
      self.bands == 1 or self.shards is None,
      f"bands={self.bands} are drawn on one device; leave mesh and shards out, or use bands=1",
    )
    own: dict[str, Any] = {"max_batch": self.max_batch, "delta_share": delta_share}
    if self.shards is None:
      plain = _batches.poisson_sampler(num_examples, self.batch_size, self.steps, **own)
      if self.bands == 1:
        return plain
      band_weights(self.bands, self.steps)  # for its checks
      return BandedSampler(num_examples, plain.rate, plain.max_batch, self.bands)
    own["shards"] = self.shards
    return _batches.sharded_sampler(num_examples, self.batch_size, self.steps, **own)

  def event(self, num_examples: int) -> accounting.DpSgd:
    """The event that a training with this config on n examples is charged as.

    Raises:
      UncoveredError: if a penalty reads private data.
    """
    self.refuse_uncovered()
    multiplier = self.noise_multiplier
    for counts in self.noisy_counts():
      multiplier = counts.joint_multiplier(float(multiplier))
    sampler = self.sampler(num_examples)
    cap = sampler.max_batch
    return accounting.DpSgd(
      float(multiplier), sampler.rate, self.steps, num_examples, cap, self.shards, self.bands
    )

  def noisy_counts(self) -> tuple[QuantileClip | GroupClip | GroupParity, ...]:
    """What releases noisy counts beside the sum of each step."""
    return tuple(one for one in (self.adaptive, self.group_rule) if one is not None)

  def refuse_uncovered(self) -> None:
    """Raises `UncoveredError` if a penalty reads private data."""
    if not all(penalty.public for penalty in self.penalties):
      raise UncoveredError(
        "the penalty reads private data without clipping or noise, so no "
        "epsilon covers this training; compute it on public data, or ask "
        "training.clipped_part_event for the part that is covered"
      )


def check_per_example(model: Model, loss: PerExampleLoss, examples: Examples) -> None:
  """Raises if the model or loss couples examples: clipping would not bound one person."""
  refuse_64_bit_mode()
  one = jax.ShapeDtypeStruct(examples.x.shape[1:], examples.x.dtype)
  params = jax.eval_shape(model.init, jax.random.key(0), one)
  few = jax.ShapeDtypeStruct((4, *one.shape), one.dtype)
  models.check_independent(model, params, few)
  logits = jax.eval_shape(model.apply, params, few)
  y_one = jnp.zeros(examples.y.shape[1:], examples.y.dtype)
  _coupling.check_loss(loss, logits.shape[-1], y_one=y_one)
