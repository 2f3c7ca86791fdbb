"""DP-SGD: sample, clip each person, add noise to the sum, step."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import tree
from jaxfair.privacy import _bands, noise
from jaxfair.privacy._banded_sampling import Parts
from jaxfair.privacy._clipping import ClippedGrad, clipped_grad, zero_broken
from jaxfair.privacy._sampling import Batch
from jaxfair.privacy._sharded_sampling import ShardedSampler
from jaxfair.training import _batches, _group_rules, _regularizers
from jaxfair.training._dp_sgd_config import DpSgdConfig
from jaxfair.training._dp_sgd_feeds import Feed, deal, make_feeds
from jaxfair.training._dp_sgd_trace import NonPrivateDpTrace, Seen, trace_of
from jaxfair.training._mesh import OnMesh, block_cap
from jaxfair.training._optimizers import optimizer_of
from jaxfair.training._program import Begun, Given, Program, descend, train
from jaxfair.training._recipes import Average, mean_over_views, sum_in_chunks, views_of
from jaxfair.types import Array, Examples, Fit, Key, Model, Params, PerExampleLoss, PyTree, Source


def dp_sgd(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples | Source,
  config: DpSgdConfig = DpSgdConfig(),
  *,
  key: Key,
  initial: Params | None = None,
  mask: Params | None = None,
  mesh: jax.sharding.Mesh | None = None,
) -> Fit:
  """Trains a model with differentially private stochastic gradient descent.

  g = (sum_i clip(grad_i, C) + N(0, (C z)^2 I)) / (q n),  then one step of any
  optimizer on g.

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    examples: the private data; of a `Source`, the people of each batch are read when they are
      drawn, by the process whose devices clip them, and the samples are those of the same people
      in memory.
    config: settings.
    key: initial parameters, samples and noise. For a release it must come from
      the operating system: `privacy.os_key()`.
    initial: parameters to start from; they must not depend on the private
      data. Drawn by `model.init` if None.
    mask: parameters are multiplied by it at the start and after every step;
      it must not depend on the private data either.
    mesh: devices that share the training; it needs `shards` in the config. People are spread over
      all of its axes: arrays that are sharded so along their first axis are used as they are.
      Parameters keep the layout of `initial`, or are held by every device.

  Returns:
    `Fit(params, NonPrivateDpTrace)`. The number of devices changes only the order in which
    sums are rounded.

  Privacy:
    The parameters (all of them, at every step) have the guarantee of `config.event(examples.size)`
    for adding or removing one example; n is public. The divisor is the expected batch size, a
    public constant. Nothing is charged here: `train_to_budget` keeps the ledger.

    Options of the recipe cost nothing more. `augment` and `views` change a person's loss to its
    mean over views of that person alone, and one gradient of it is clipped: one person still moves
    the sum by C. `chunk_size` adds the same clipped gradients of the same Poisson sample in another
    order, and so do the devices of a mesh: the noise is added once, to the sum over all of them.
    The optimizer, `average`, `rescale` and the clip bound, which the optimizer may see, are
    functions of what was released.

    With `bands` a step releases a weighted sum of the last sums, and the optimizer gets the
    gradients solved from these; one person takes part in at most one of `bands` consecutive steps.
    `privacy._bands` proves what that costs.

  Reference:
    Abadi et al. 2016; Choquette-Choo et al. 2023 (`bands`).
  """
  program = DpSgdProgram.on(mesh, model, loss, examples, config, initial)
  return train(program, Given(examples, config, key, initial, mask=mask))


class DpSgdState(NamedTuple):
  """The state between steps, as a checkpoint holds it."""

  params: Params
  optimizer: Any
  l2_clip: jax.Array
  average: Average | None = None
  groups: Any = None  # the state of `DpSgdConfig.group_rule`
  memory: _bands.Memory | None = None  # of `DpSgdConfig.bands`; it holds sums without noise


class AtHand(NamedTuple):
  """The people of a step's batch, in its order, where they were read for it."""

  people: Examples


class DpSgdInputs(NamedTuple):
  """What every step reads."""

  people: Examples | AtHand
  config: DpSgdConfig
  mask: Params | None = None
  parts: Parts | None = None  # that people are dealt to by `DpSgdConfig.bands`


class _Sums(NamedTuple):
  """The sums over a batch, to which noise is added before they are released."""

  total: Params
  fitting: jax.Array  # the centered count of an adaptive clip
  groups: jax.Array | None = None  # [groups, categories] counts for a group rule


@dataclasses.dataclass(frozen=True)
class DpSgdProgram(Program):
  """Samples, clips, adds noise, averages, steps.

  Attributes:
    on_mesh: the devices that share the people; None: one device.
  """

  on_mesh: OnMesh | None = None

  @classmethod
  def on(
    cls,
    mesh: jax.sharding.Mesh | None,
    model: Model,
    loss: PerExampleLoss,
    examples: Examples | Source,
    config: DpSgdConfig,
    initial: Params | None,
  ) -> "DpSgdProgram":
    """The program on a mesh, or on one device."""
    if mesh is None:
      return cls(model, loss)
    return cls(model, loss, OnMesh.checked(mesh, config.shards, examples, initial))

  def place(self, given: Given) -> Given:
    """Puts people and parameters on the devices that work on them."""
    mesh = self.on_mesh
    if mesh is None:
      return given
    initial, mask = (
      None if held is None else mesh.place_params(held) for held in (given.initial, given.mask)
    )
    config, key = mesh.place_everywhere((given.config, given.key))
    return Given(mesh.place_people(given.examples), config, key, initial, mask=mask)

  def begin(self, given: Given) -> Begun:
    """The state before the first step."""
    config, params = given.config, self._laid_out(self.start(given))
    optimizer = optimizer_of(config).init(params)
    average = None if config.average is None else Average.begin(params)
    clip = jnp.asarray(config.l2_clip, jnp.float32)
    groups = _group_rules.begin(config.group_rule, self.model, params, given.examples.x)
    memory = None if config.bands == 1 else _bands.Memory.empty(params, config.bands)
    state = DpSgdState(params, optimizer, clip, average, groups, memory)
    parts = deal(config, self.size_of(given.examples), key=given.key)
    inputs = DpSgdInputs(given.examples, config, given.mask, parts)
    return Begun(state, given.key, inputs)

  def rows(self, inputs: DpSgdInputs) -> int:
    """The cap on a batch, or on the part of it that a device draws."""
    sampler = inputs.config.sampler(self.size_of(inputs.people))
    if isinstance(sampler, ShardedSampler):
      return block_cap(sampler, 1 if self.on_mesh is None else self.on_mesh.blocks)
    cap: int = sampler.max_batch
    return cap

  def feed(self, source: Key, inputs: DpSgdInputs, start: jax.Array | int, count: int) -> Feed:
    """Samples and keys; see `make_feeds`."""
    size, own = self.size_of(inputs.people), {"on_mesh": self.on_mesh, "parts": inputs.parts}
    return make_feeds(inputs.config, size, count, key=source, start=start, **own)

  def chosen(self, feeds: Feed) -> Batch:
    """The rows of the samples, and which of them are people."""
    return feeds.batch

  def at_hand(self, feed: Feed, inputs: DpSgdInputs, people: Examples) -> tuple[Feed, DpSgdInputs]:
    """The batch is all of these people."""
    return feed, inputs._replace(people=AtHand(people))

  def sum(self, state: DpSgdState, feed: Feed, inputs: DpSgdInputs) -> tuple[_Sums, Seen]:
    """The sums of clipped gradients and of what is traced."""
    inside = self._penalties(state, feed, inputs.config, inside=True)
    block = functools.partial(self._block_sum, inputs.config)
    given = (state.params, state.l2_clip, inside, feed.key_views, state.groups)
    held = inputs.people
    if self.on_mesh is not None:
      return self.on_mesh.sum(block, given, feed.batch, held)
    rows = feed.batch.rows
    return block(given, feed.batch, rows if inputs.config.shards else jnp.arange(len(rows)), held)

  def _block_sum(
    self, config: DpSgdConfig, given: PyTree, batch: Batch, places: Array, held: Examples | AtHand
  ) -> tuple[_Sums, Seen]:
    """The sums over the people of one device's batch.

    Args:
      config: only its static fields are read.
      given: parameters, clip bound, gradient of the penalties inside the clip, key of the views,
        state of the group rule.
      batch: rows of the people that are held, and who takes part.
      places: numbers that name the rows in the draw of views.
      held: everybody, or the people of this batch.
    """
    if isinstance(held, AtHand):
      held, batch = held.people, batch._replace(rows=np.arange(batch.rows.shape[0]))
    params, l2_clip, inside, key_views, state = given
    gradient, rule = self._query(config, l2_clip, inside, state), config.group_rule

    def clipped_sum(batch: tuple[Any, Any, Any]) -> tuple[Any, Any]:
      rows, mask, places = batch
      people, whole = zero_broken(_batches.look_up(held, rows))
      group, bounds, outputs = people.group, None, None
      if rule is not None:
        bounds = _group_rules.own_bounds(rule, state, l2_clip, group)
        outputs = self.model.apply(params, people.x) if rule.reads_outputs else None
        people = people._replace(y=_group_rules.with_groups(people.y, group, rule.num_groups))
      if config.augment is not None:
        keys = jax.vmap(jax.random.fold_in, (None, 0))(key_views, places)
        people = people._replace(x=views_of(people.x, config.augment, config.views, keys=keys))
      clipped, losses = gradient.with_losses(params, people, mask, whole, bounds)
      counts = None
      if rule is not None:
        categories = rule.categories(clipped.norms, outputs, l2_clip)
        counts = _group_rules.count_people(group, categories, mask & whole, rule.num_groups)
      return (clipped.total, clipped.num_nonfinite, counts), (clipped.norms, losses, whole)

    (rows, mask), chunk = batch, config.chunk_size
    if chunk is None or chunk >= rows.shape[0]:
      sums, each = clipped_sum((rows, mask, places))
    else:
      sums, each = sum_in_chunks(clipped_sum, (rows, mask, places), chunk)
    (total, num_nonfinite, counts), (norms, losses, whole) = sums, each
    fitting = jnp.zeros(())
    if config.adaptive is not None:
      # A person left out of the sum is not counted, either: to be left out is
      # then as not to be there.
      fitting = config.adaptive.centered_count(l2_clip, norms, mask & whole)
    seen = Seen(
      loss=jnp.sum(jnp.where(mask, losses, 0.0)),
      norm=jnp.sum(norms),
      clipped=jnp.sum(norms > l2_clip),
      batch=jnp.sum(mask),
      num_nonfinite=num_nonfinite,
    )
    return _Sums(total, fitting, counts), seen

  def release(
    self, total: _Sums, state: DpSgdState, feed: Feed, inputs: DpSgdInputs
  ) -> tuple[Params, jax.Array, Any, _bands.Memory | None]:
    """The noisy sum over the expected batch size; the next clip bound, state of groups, memory."""
    config, clip = inputs.config, state.l2_clip
    size = float(config.batch_size)
    sensitivity = self._query(config, clip, None, state.groups).sensitivity
    memory = state.memory
    if memory is None:
      noisy = noise.gaussian(
        self._laid_out(total.total),
        sigma=config.noise_multiplier * sensitivity,
        key=feed.key_sum,
        by_leaf=self.on_mesh is not None,
      )
    else:
      weights = _bands.band_weights(config.bands, config.steps)
      noisy, memory = _bands.release_mix(
        memory, total.total, weights, sensitivity, sigma=config.noise_multiplier, key=feed.key_sum
      )
    if config.adaptive is not None:
      clip = config.adaptive.update_from_count(
        clip, total.fitting, expected_size=size, key=feed.key_count
      )
    groups, rule = state.groups, config.group_rule
    if rule is not None:
      counts = noise.gaussian(total.groups, sigma=rule.count_noise, key=feed.key_groups)
      groups = rule.update(groups, counts)
    return tree.scale(1 / size, noisy), clip, groups, memory

  def update(
    self, state: DpSgdState, released: PyTree, seen: Seen, feed: Feed, inputs: DpSgdInputs
  ) -> tuple[DpSgdState, NonPrivateDpTrace]:
    """Regularizers, then one step of the optimizer."""
    config, (mean, clip, groups, memory) = inputs.config, released
    if config.rescale:
      mean = tree.scale(config.l2_clip / state.l2_clip, mean)
    gradient = tree.add(mean, tree.scale(config.weight_decay, state.params))
    extra = self._penalties(state, feed, config, inside=False)
    if extra is not None:
      gradient = tree.add(gradient, extra)
    params, optimizer = descend(
      config, gradient, state.optimizer, state.params, mask=inputs.mask, l2_clip=state.l2_clip
    )
    params, average = self._laid_out(params), state.average
    if average is not None:
      average = average.with_step(params, config.average)
    state_after = DpSgdState(params, optimizer, clip, average, groups, memory)
    return state_after, trace_of(seen, state.l2_clip)

  def finish(self, state: DpSgdState, infos: PyTree, inputs: PyTree) -> Fit:
    """The last parameters, or their running mean."""
    del inputs
    return Fit(self.params_of(state), infos)

  def params_of(self, state: DpSgdState) -> Params:
    """The parameters that are returned."""
    return state.params if state.average is None else state.average.params

  def _query(
    self, config: DpSgdConfig, l2_clip: jax.Array, inside: Params | None, groups: PyTree
  ) -> ClippedGrad:
    """The clipped gradient, which knows its sensitivity."""
    model, loss, method, rule = self.model, self.loss, config.method, config.group_rule
    if rule is not None:
      loss, factors = rule.loss(loss, groups), rule.factors(groups)
      l2_clip = l2_clip if factors is None else l2_clip * jnp.max(factors)
    if config.augment is not None:
      model, loss = mean_over_views(model, loss, config.views)
    if inside is not None:
      model, loss, method = *_regularizers.added_to_each(model, loss, inside), "vmap"
    return clipped_grad(
      model, loss, l2_clip=l2_clip, method=method, per_layer=config.per_layer, rule=config.rule
    )

  def size_of(self, people: Examples | AtHand) -> int:
    """Number of people, without the rows that fill up a device's block."""
    if self.on_mesh is not None:
      return self.on_mesh.size
    assert isinstance(people, Examples)
    return people.size

  def _laid_out(self, params: Params) -> Params:
    return params if self.on_mesh is None else self.on_mesh.laid_out(params)

  def _penalties(
    self, state: DpSgdState, feed: Feed, config: DpSgdConfig, *, inside: bool
  ) -> Params | None:
    return _regularizers.penalty_gradient(
      config, state.params, l2_clip=state.l2_clip, key=feed.key_penalty, inside=inside
    )
