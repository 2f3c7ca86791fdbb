"""DP-SGD: sample, clip each person, add noise to the sum, step."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair import tree
from jaxfair.privacy import noise
from jaxfair.privacy._clipping import Clipped, clipped_grad, zero_broken
from jaxfair.privacy._sampling import Batch
from jaxfair.training import _batches, _group_rules, _regularizers
from jaxfair.training._dp_sgd_config import DpSgdConfig
from jaxfair.training._optimizers import optimizer_of
from jaxfair.training._program import Begun, Given, Program, descend, train
from jaxfair.training._recipes import Average, mean_over_views, sum_in_chunks, views_of
from jaxfair.types import Examples, Fit, Key, Model, Params, PerExampleLoss


class NonPrivateDpTrace(NamedTuple):
  """The trace of a private training, computed without noise; not for release.

  Not for release: the accountant covers the parameters, not these numbers.
  Reports of private runs leave them out.

  Attributes:
    loss: [steps] mean loss of the batch before the step.
    mean_norm: [steps] mean gradient norm before clipping.
    clipped: [steps] share of the batch whose gradient was clipped.
    batch: [steps] realized batch sizes.
    num_nonfinite: [steps] examples left out for a non-finite gradient.
    l2_clip: [steps] the bound in use. This one is private when `adaptive`
      moved it, and a constant otherwise.
  """

  loss: jax.Array
  mean_norm: jax.Array
  clipped: jax.Array
  batch: jax.Array
  num_nonfinite: jax.Array
  l2_clip: jax.Array


def dp_sgd(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: DpSgdConfig = DpSgdConfig(),
  *,
  key: Key,
  initial: Params | None = None,
  mask: Params | None = None,
) -> Fit:
  """Trains a model with differentially private stochastic gradient descent.

  g = (sum_i clip(grad_i, C) + N(0, (C z)^2 I)) / (q n),  then one step of any
  optimizer on g.

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    examples: the private data.
    config: settings.
    key: initial parameters, samples and noise. For a release it must come from
      the operating system: `privacy.os_key()`.
    initial: parameters to start from; they must not depend on the private
      data. Drawn by `model.init` if None.
    mask: parameters are multiplied by it at the start and after every step;
      it must not depend on the private data either.

  Returns:
    `Fit(params, NonPrivateDpTrace)`.

  Privacy:
    The parameters (all of them, at every step) have the guarantee of `config.event(examples.size)`
    for adding or removing one example; n is public. The divisor is the expected batch size, a
    public constant. Nothing is charged here: `train_to_budget` keeps the ledger.

    Options of the recipe cost nothing more. `augment` and `views` change a person's loss to its
    mean over views of that person alone, and one gradient of it is clipped: one person still moves
    the sum by C. `chunk_size` adds the same clipped gradients of the same Poisson sample in another
    order. The optimizer, `average`, `rescale` and the clip bound, which the optimizer may see, are
    functions of what was released.

  Reference:
    Abadi et al. 2016.
  """
  return train(DpSgdProgram(model, loss), Given(examples, config, key, initial, mask=mask))


class DpSgdState(NamedTuple):
  """The state between steps, as a checkpoint holds it."""

  params: Params
  optimizer: Any
  l2_clip: jax.Array
  average: Average | None = None
  groups: Any = None  # the state of `DpSgdConfig.group_rule`


class Feed(NamedTuple):
  """The feed of one step: its batch, keys of its noises, the penalties and the views."""

  batch: Batch
  key_sum: jax.Array
  key_count: jax.Array
  key_penalty: jax.Array
  key_views: jax.Array
  key_groups: jax.Array | None = None


class DpSgdInputs(NamedTuple):
  """What every step reads."""

  people: Examples
  finite: jax.Array  # [n] whose features are finite numbers
  config: DpSgdConfig
  mask: Params | None = None


class _Sums(NamedTuple):
  """The sums over a batch, to which noise is added before they are released."""

  total: Params
  sensitivity: Any
  norms: jax.Array  # [batch] for the count of an adaptive clip
  counted: jax.Array  # [batch] who takes part in the sum, and is counted
  groups: jax.Array | None = None  # [groups, categories] counts for a group rule


class DpSgdProgram(Program):
  """Samples, clips, adds noise, averages, steps."""

  def begin(self, given: Given) -> Begun:
    """The state before the first step, and people without broken features."""
    config, params = given.config, self.start(given)
    optimizer = optimizer_of(config).init(params)
    average = None if config.average is None else Average.begin(params)
    groups = None
    if config.group_rule is not None:
      groups = config.group_rule.begin(self._num_classes(params, given.examples.x))
    clip = jnp.asarray(config.l2_clip, jnp.float32)
    state = DpSgdState(params, optimizer, clip, average, groups)
    inputs = DpSgdInputs(*zero_broken(given.examples), config, given.mask)
    return Begun(state, given.key, inputs)

  def rows(self, inputs: DpSgdInputs) -> int:
    """The cap on a batch."""
    cap: int = inputs.config.sampler(inputs.people.x.shape[0]).max_batch
    return cap

  def feed(self, source: jax.Array, inputs: DpSgdInputs, start: Any, count: int) -> Feed:
    """Samples and keys; see `make_feeds`."""
    size = inputs.people.x.shape[0]
    return make_feeds(inputs.config, size, count, key=source, start=start)

  def sum(
    self, state: DpSgdState, feed: Feed, inputs: DpSgdInputs
  ) -> tuple[_Sums, NonPrivateDpTrace]:
    """The sum of clipped gradients, with its sensitivity."""
    config, (rows, mask) = inputs.config, feed.batch
    model, loss, method = self.model, self.loss, config.method
    rule, clip, factors = config.group_rule, state.l2_clip, None
    if rule is not None:
      loss, factors = rule.loss(loss, state.groups), rule.factors(state.groups)
      clip = clip if factors is None else clip * jnp.max(factors)
    if config.augment is not None:
      model, loss = mean_over_views(model, loss, config.views)
    inside = self._penalties(state, feed, config, inside=True)
    if inside is not None:
      model, loss, method = *_regularizers.added_to_each(model, loss, inside), "vmap"
    gradient = clipped_grad(
      model, loss, l2_clip=clip, method=method, per_layer=config.per_layer, rule=config.rule
    )

    def clipped_sum(batch: tuple[Any, Any, Any]) -> tuple[Any, Any]:
      rows, mask, places = batch
      people, whole = _batches.look_up((inputs.people, inputs.finite), rows)
      group, bounds, outputs = people.group, None, None
      if rule is not None:
        people = people._replace(y=_group_rules.with_groups(people.y, group, rule.num_groups))
        bounds = None if factors is None else state.l2_clip * factors[group]
        if rule.reads_outputs:
          outputs = self.model.apply(state.params, people.x)
      if config.augment is not None:
        keys = jax.vmap(jax.random.fold_in, (None, 0))(feed.key_views, places)
        people = people._replace(x=views_of(people.x, config.augment, config.views, keys=keys))
      clipped, losses = gradient.with_losses(state.params, people, mask, whole, bounds)
      counts = None
      if rule is not None:
        category = rule.categories(clipped.norms, outputs, state.l2_clip)
        shape = (rule.num_groups, rule.num_categories(self._num_classes(state.params, people.x)))
        counts = _group_rules.count_people(group, category, mask & whole, shape)
      return (clipped.total, clipped.num_nonfinite, counts), (clipped.norms, losses, whole)

    batch = (rows, mask, jnp.arange(rows.shape[0]))
    if config.chunk_size is None or config.chunk_size >= rows.shape[0]:
      sums, each = clipped_sum(batch)
    else:
      sums, each = sum_in_chunks(clipped_sum, batch, config.chunk_size)
    (total, num_nonfinite, counts), (norms, losses, whole) = sums, each
    clipped = Clipped(total, norms, num_nonfinite)
    # A person left out of the sum is not counted, either: to be left out is
    # then as not to be there.
    released = _Sums(total, gradient.sensitivity, norms, mask & whole, counts)
    return released, _trace(losses, clipped, mask, state.l2_clip)

  def release(
    self, total: _Sums, state: DpSgdState, feed: Feed, inputs: DpSgdInputs
  ) -> tuple[Params, jax.Array, Any]:
    """The noisy sum over the expected batch size, the next clip bound and state of groups."""
    config, clip = inputs.config, state.l2_clip
    size = float(config.batch_size)
    noisy = noise.gaussian(
      total.total, sigma=config.noise_multiplier * total.sensitivity, key=feed.key_sum
    )
    if config.adaptive is not None:
      clip = config.adaptive.update(
        clip, total.norms, total.counted, expected_size=size, key=feed.key_count
      )
    groups = state.groups
    if config.group_rule is not None:
      assert feed.key_groups is not None
      rule = config.group_rule
      counts = noise.gaussian(total.groups, sigma=rule.count_noise, key=feed.key_groups)
      groups = rule.update(groups, counts)
    return tree.scale(1 / size, noisy), clip, groups

  def update(
    self, state: DpSgdState, released: Any, seen: Any, feed: Feed, inputs: DpSgdInputs
  ) -> tuple[DpSgdState, NonPrivateDpTrace]:
    """Regularizers, then one step of the optimizer."""
    config, (mean, clip, groups) = inputs.config, released
    if config.rescale:
      mean = tree.scale(config.l2_clip / state.l2_clip, mean)
    gradient = tree.add(mean, tree.scale(config.weight_decay, state.params))
    extra = self._penalties(state, feed, config, inside=False)
    if extra is not None:
      gradient = tree.add(gradient, extra)
    params, optimizer = descend(
      config, gradient, state.optimizer, state.params, mask=inputs.mask, l2_clip=state.l2_clip
    )
    average = state.average
    if average is not None:
      average = average.with_step(params, config.average)
    return DpSgdState(params, optimizer, clip, average, groups), seen

  def finish(self, state: DpSgdState, infos: Any, inputs: Any) -> Fit:
    """The last parameters, or their running mean."""
    del inputs
    return Fit(self.params_of(state), infos)

  def params_of(self, state: DpSgdState) -> Params:
    """The parameters that are returned."""
    return state.params if state.average is None else state.average.params

  def _num_classes(self, params: Params, x: Any) -> int:
    one = jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype)
    return int(jax.eval_shape(self.model.apply, params, one).shape[-1])

  def _penalties(
    self, state: DpSgdState, feed: Feed, config: DpSgdConfig, *, inside: bool
  ) -> Params | None:
    return _regularizers.penalty_gradient(
      config, state.params, l2_clip=state.l2_clip, key=feed.key_penalty, inside=inside
    )


@functools.partial(jax.jit, static_argnames=("num_examples", "count"))
def make_feeds(
  config: DpSgdConfig, num_examples: int, count: int, *, key: Key, start: Any = 0
) -> Feed:
  """Samples and keys of `count` steps from `start` on.

  Keys are named by the step's index, so a training cut into segments draws
  the same samples and noise as one in a piece.
  """
  sampler = config.sampler(num_examples)
  key_batch, *keys = (jax.random.fold_in(key, purpose) for purpose in (1, 2, 3, 4, 5, 6))

  def one(step: jax.Array) -> Feed:
    return Feed(
      sampler.draw(key=jax.random.fold_in(key_batch, step)),
      *(jax.random.fold_in(own, step) for own in keys),
    )

  return jax.vmap(one)(start + jnp.arange(count))


def _trace(losses: jax.Array, clipped: Any, mask: jax.Array, clip: jax.Array) -> NonPrivateDpTrace:
  count = jnp.sum(mask)
  share = 1 / jnp.maximum(count, 1)
  return NonPrivateDpTrace(
    loss=jnp.sum(jnp.where(mask, losses, 0.0)) * share,
    mean_norm=jnp.sum(clipped.norms) * share,
    clipped=jnp.sum(clipped.norms > clip) * share,
    batch=count,
    num_nonfinite=clipped.num_nonfinite,
    l2_clip=clip,
  )
