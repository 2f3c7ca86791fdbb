"""PF-LD: training under fairness constraints with private group attributes.

Of the Lagrangian

  mean loss + sum_{s,a} mu_{s,a} (E[h | s, a] - E[h | s])

only E[h | s, a] knows groups. Each person's part in its gradient is clipped
and noised at every primal step, each person's part in its value at every dual
step, and the sizes of the groups once, at the start. All the rest is computed
as it is: features and labels are public here.

The rest has a sample of its own. A gradient without noise tells whom it was computed of, and a
sample that is known amplifies nothing: the one behind the private term must stay secret.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, tree
from jaxfair.fairness._groups import group_sums
from jaxfair.fairness.constraints import Notion
from jaxfair.privacy import _grid_sums, noise
from jaxfair.privacy._adaptive import SMALLEST
from jaxfair.privacy._clipping import clipped_grad
from jaxfair.privacy._sampling import Batch
from jaxfair.training import _batches, _regularizers
from jaxfair.training._optimizers import optimizer_of
from jaxfair.training._private_lagrangian_config import MAX_WIDTH, PrivateLagrangianConfig
from jaxfair.training._program import Begun, Given, RoundProgram, descend, train
from jaxfair.types import Examples, Fit, Index, Key, Model, Params, PerExampleLoss, PyTree


class DualTrace(NamedTuple):
  """The trace of a training; the same guarantee covers it.

  Attributes:
    loss: [rounds] mean loss over the round's public samples; knows no groups.
    gaps: [rounds, S, G, d] violations as seen through noise.
    multipliers: [rounds, 2, S, G, d] of gap and -gap.
    sizes: [S, G] noisy sizes.
  """

  loss: jax.Array
  gaps: jax.Array
  multipliers: jax.Array
  sizes: jax.Array


def private_lagrangian(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: PrivateLagrangianConfig,
  *,
  key: Key,
  initial: Params | None = None,
  anchor: Params | None = None,
) -> Fit:
  """Trains under fairness constraints, with the groups private (PF-LD).

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    examples: public x and y, private group.
    config: settings, with noise from `config.calibrated(...)`.
    key: initial parameters, samples and noise.
    initial: parameters to start from; they must not depend on the groups.
    anchor: center of the proximity term; it must not depend on the groups.

  Returns:
    `Fit(params, DualTrace)`.

  Privacy:
    Parameters and trace have the guarantee of `config.event(n)` if one person's group changes:
    Poisson-sampled Gaussians for the primal steps, plain ones for the dual steps and the sizes. The
    sample of the private term is drawn separately from that of the loss and is used only for the
    noisy sum. A group enters a gradient only through its price, mu n / size, which is released;
    relative to the midpoint of all prices one person adds at most C times half their range, and
    changing a group moves twice that. In a dual step it moves one person's statistics, of norm at
    most B sqrt(d), from one sum to another: sqrt(2) times that. Sizes and sums are released in the
    trace: they are exact integers of a public grid under discrete Gaussian noise
    (`privacy._grid_sums`), whose distance to the continuous law is charged.

  Reference:
    Tran, Fioretto & Van Hentenryck (2021), Differentially private and fair
    deep learning: a Lagrangian dual approach. It protects the attribute as well,
    with noise for a mean over the smallest group of a batch. Here the noise is
    scaled by the released prices, which is less.
  """
  given = Given(examples, config, key, initial, anchor)
  return train(PrivateLagrangianProgram(model, loss), given)


class _State(NamedTuple):
  params: Params
  optimizer: Any
  multipliers: jax.Array  # [2, S, G, d]


class _Inputs(NamedTuple):
  examples: Examples
  config: PrivateLagrangianConfig
  anchor: Any
  sizes: jax.Array  # [S, G], noisy
  strata: jax.Array  # [S], exact: labels are public


class _Feed(NamedTuple):
  """The feed of one primal step."""

  public: Batch
  secret: Batch
  key: jax.Array


class _Sums(NamedTuple):
  """What a primal step computes from two samples."""

  public: Params  # gradient of loss and regularizers
  known: Params  # sum of the constraints' gradients that knows no groups
  private: Params  # sum of the constraints' gradients that does
  reach: jax.Array  # what one person can add to it, over C


class PrivateLagrangianProgram(RoundProgram):
  """Training under constraints, with private groups."""

  def begin(self, given: Given) -> Begun:
    """Multipliers at zero, and the noisy sizes of the groups."""
    examples, config, notion = given.examples, given.config, given.config.notion
    names = ("start", "secret", "primal", "dual", "sizes", "public")
    keys = {n: jax.random.fold_in(given.key, i) for i, n in enumerate(names)}
    params = self.start(given)
    width = _width(self.model, notion, params, examples)
    checks.require(
      width <= MAX_WIDTH,
      f"{notion.name} compares {width} statistics; the price of the noise's grid "
      f"is for at most {MAX_WIDTH}",
    )
    shape = (notion.num_strata, notion.num_groups)
    sizes = _grid_sums.noisy_sums(
      jnp.ones((examples.size, 1)),
      _cells(notion, examples),
      math.prod(shape),
      bound=1.0,
      noise_multiplier=config.count_noise,
      sensitivity=math.sqrt(2),
      key=keys["sizes"],
    )
    sizes = jnp.maximum(sizes.reshape(shape), 1.0)
    # Not a scatter: with one stratum its indices are constants, and the
    # compiler would add them up, slowly, itself.
    stratum = notion.stratum(examples.y)[:, None]
    strata = jnp.sum(stratum == jnp.arange(notion.num_strata), axis=0)
    optimizer = optimizer_of(config).init(params)
    state = _State(params, optimizer, jnp.zeros((2, *shape, width)))
    return Begun(state, keys, _Inputs(examples, config, given.anchor, sizes, strata))

  def rows(self, inputs: _Inputs) -> int:
    """Rows of both samples of all primal steps of a round."""
    config = inputs.config
    return 2 * config.steps_per_round * config.sampler(inputs.examples.size).max_batch

  def feed(
    self, source: dict[str, jax.Array], inputs: _Inputs, start: Index, count: int
  ) -> tuple[_Feed, jax.Array]:
    """Primal feeds [count, steps per round] and keys [count] of the dual steps."""
    sampler = inputs.config.sampler(inputs.examples.size)
    shape = (count, inputs.config.steps_per_round)
    numbers = start * shape[1] + jnp.arange(math.prod(shape))

    def numbered(key: Key) -> jax.Array:
      return jax.vmap(jax.random.fold_in, (None, 0))(key, numbers)

    # Both samples through one program: the sampler takes long to compile.
    pair = jnp.concatenate([numbered(source["public"]), numbered(source["secret"])])
    drawn = jax.vmap(lambda key: sampler.draw(key=key))(pair)
    public, secret = (
      jax.tree.map(lambda leaf, i=i: leaf.reshape(2, *shape, -1)[i], drawn) for i in range(2)
    )
    noises = numbered(source["primal"]).reshape(shape)
    duals = jax.vmap(lambda r: jax.random.fold_in(source["dual"], r))
    return _Feed(public, secret, noises), duals(start + jnp.arange(count))

  def sum(self, state: _State, feed: _Feed, inputs: _Inputs) -> tuple[_Sums, jax.Array]:
    """The gradients of loss and constraints, and the mean loss."""
    config, total = inputs.config, inputs.examples.size
    signed = state.multipliers[0] - state.multipliers[1]  # [S, G, d]
    price = total * signed / inputs.sizes[..., None]
    everybody = total * jnp.sum(signed, axis=1)
    everybody /= jnp.maximum(inputs.strata, 1)[:, None]  # [S, d]
    # What a group's price has beyond the middle of all groups' is private.
    middle = (jnp.max(price, axis=1) + jnp.min(price, axis=1)) / 2
    beyond = price - middle[:, None]
    reach = jnp.max(jnp.linalg.norm(beyond, axis=-1))
    batch = _batches.look_up(inputs.examples, feed.public.rows)

    def public(params: Params) -> tuple[jax.Array, jax.Array]:
      scores = self.model.apply(params, batch.x)
      losses = self.loss(scores, batch.y)
      losses = jnp.where(feed.public.mask, losses, 0.0)
      mean = jnp.sum(losses) / config.batch_size
      return mean + _regularizers.pull(params, config, inputs.anchor), mean

    gradient, mean = jax.grad(public, has_aux=True)(state.params)
    known = self._priced(
      state.params, feed.public, inputs, lambda stratum, group: (middle - everybody)[stratum]
    )
    private = self._priced(
      state.params, feed.secret, inputs, lambda stratum, group: beyond[stratum, group]
    )
    return _Sums(gradient, known, private, reach), mean

  def release(self, total: _Sums, state: _State, feed: _Feed, inputs: _Inputs) -> Params:
    """Noise on the part that knows groups."""
    del state
    config, private = inputs.config, total.private
    sigma = config.noise_multiplier * config.l2_clip * total.reach
    # What float32 counts as zero would be no noise, on a sum that need not be zero.
    least = jnp.where((config.noise_multiplier > 0) & (total.reach > 0), SMALLEST, 0.0)
    private = noise.gaussian(private, sigma=jnp.maximum(sigma, least), key=feed.key)
    constraints = tree.scale(1 / config.batch_size, tree.add(total.known, private))
    return tree.add(total.public, constraints)

  def update(
    self, state: _State, released: Params, seen: jax.Array, feed: _Feed, inputs: _Inputs
  ) -> tuple[_State, jax.Array]:
    """One step of the optimizer."""
    params, optimizer = descend(inputs.config, released, state.optimizer, state.params)
    return state._replace(params=params, optimizer=optimizer), seen

  def _priced(
    self,
    params: Params,
    sample: Batch,
    inputs: _Inputs,
    price: Callable[[jax.Array, jax.Array], jax.Array],
  ) -> Params:
    """Sum of price times gradient of h, each of norm C |price| at most.

    The bound goes with the price, so that people of all groups are clipped
    alike: a bound for all would cut down small groups, whose prices are high.
    """
    config, notion = inputs.config, inputs.config.notion
    batch = _batches.look_up(inputs.examples, sample.rows)
    stratum = notion.stratum(batch.y)
    inside = (stratum >= 0) & (stratum < notion.num_strata) & sample.mask
    prices = jnp.where(inside[:, None], price(stratum, batch.group), 0.0)
    packed = [batch.y[:, None].astype(prices.dtype), prices]
    clipped = clipped_grad(
      self.model,
      _Priced(notion),
      method=config.method,
      l2_clip=config.l2_clip * jnp.linalg.norm(prices, axis=-1),
    )
    own = batch._replace(y=jnp.concatenate(packed, axis=1))
    return clipped(params, own, inside).total

  def dual(self, state: _State, key: Key, inputs: _Inputs) -> tuple[_State, Any]:
    """Multipliers follow noisy violations of all people."""
    config, people, notion = inputs.config, inputs.examples, inputs.config.notion
    scores = self.model.apply(state.params, people.x)
    values = _bounded(notion.decision(scores, people.y), notion.bound)
    shape = state.multipliers.shape[1:]
    sums = _grid_sums.noisy_sums(
      values,
      _cells(notion, people),
      shape[0] * shape[1],
      bound=notion.bound,
      noise_multiplier=config.dual_noise,
      sensitivity=math.sqrt(2 * shape[2]),
      key=key,
    )
    sums = sums.reshape(shape)
    public = group_sums(values, notion.stratum(people.y), notion.num_strata)
    everybody = public / jnp.maximum(inputs.strata, 1)[:, None]
    gaps = sums / inputs.sizes[..., None] - everybody[:, None]
    excess = jnp.stack([gaps, -gaps]) - config.tolerance
    multipliers = state.multipliers + config.dual_rate * excess
    multipliers = jnp.maximum(0.0, multipliers)
    return state._replace(multipliers=multipliers), (gaps, multipliers)

  def join(
    self, state: _State, infos: jax.Array, found: PyTree, feed: PyTree, inputs: _Inputs
  ) -> tuple[_State, Any]:
    """The mean loss, gaps and multipliers."""
    return state, (jnp.mean(infos), *found)

  def finish(self, state: _State, infos: PyTree, inputs: _Inputs) -> Fit:
    """Adds the noisy sizes to the trace."""
    loss, gaps, multipliers = infos
    return Fit(state.params, DualTrace(loss, gaps, multipliers, inputs.sizes))


@dataclasses.dataclass(frozen=True)
class _Priced:
  """Statistics times their price, as a loss: y is packed (label, prices)."""

  notion: Notion

  def __call__(self, scores: PyTree, packed: PyTree) -> jax.Array:
    label = packed[:, 0].astype(jnp.int32)
    return jnp.sum(self.notion.statistic(scores, label) * packed[:, 1:], -1)


def _bounded(values: jax.Array, bound: float) -> jax.Array:
  """The value within the bound, or 0 if it is NaN.

  No noise hides a NaN: the sum that is NaN would reveal the group of its person.
  """
  clipped = jnp.clip(values, -bound, bound)
  return jnp.where(jnp.isnan(clipped), 0.0, clipped)


def _cells(notion: Notion, people: Examples) -> jax.Array:
  """[n] cell ids; one past the last for people of no stratum."""
  stratum = notion.stratum(people.y)
  inside = (stratum >= 0) & (stratum < notion.num_strata)
  cells = stratum * notion.num_groups + people.group
  return jnp.where(inside, cells, notion.num_strata * notion.num_groups)


def _width(model: Model, notion: Notion, params: Params, people: Examples) -> int:
  """d, the number of statistics."""
  few = jax.eval_shape(
    lambda p: notion.statistic(model.apply(p, people.x[:1]), people.y[:1]), params
  )
  return int(np.shape(few)[-1])
