"""Training under constraints: the Lagrangian dual method.

  primal:  theta goes down  mean loss + regularizers + sum_i mu_i v_i(theta)
  dual:    mu_i = max(0, mu_i + s (v_i(theta) - tolerance))

One round is some primal steps and one step of the multipliers mu. Without a
tolerance, and with v_i = |gap_i|, it is the papers' rule mu_i += s |gap_i|.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair.fairness._notion import Notion, Violations
from jaxfair.training import _batches, _regularizers
from jaxfair.training._lagrangian_config import Constraint, LagrangianConfig
from jaxfair.training._optimizers import optimizer_of
from jaxfair.training._program import Begun, Given, RoundProgram, descend, train
from jaxfair.types import Examples, Fit, Index, Key, Model, Params, PerExampleLoss, PyTree


class NonPrivateDualTrace(NamedTuple):
  """The trace of a training, computed from the training data without noise.

  Not for release: no noise protects these numbers.

  Attributes:
    loss: [rounds] mean loss over the round's batches, without penalties.
    violations: [rounds, m] as measured, after the round's primal steps.
    multipliers: [rounds, m] after the round.
    people: [rounds, m] people behind each violation.
    empty: [rounds] how many violations of the round's batches had nobody
      behind them, and contributed nothing; at most steps_per_round * m.
  """

  loss: jax.Array
  violations: jax.Array
  multipliers: jax.Array
  people: jax.Array
  empty: jax.Array


def lagrangian(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: LagrangianConfig = LagrangianConfig(),
  *,
  key: Key,
  initial: Params | None = None,
  anchor: Params | None = None,
  mask: Params | None = None,
) -> Fit:
  """Trains a model under constraints, without privacy.

      notion = fairness.constraints.demographic_parity(num_groups=2)
      config = LagrangianConfig(constraint=notion, tolerance=0.02)
      fit = lagrangian(model, loss, people, config, key=key)

  Args:
    model: any model.
    loss: `(logits, y) -> [n]` losses.
    examples: the training part, with the groups that are to be fair.
    config: settings.
    key: initial parameters and the order of batches.
    initial: parameters to start from; drawn by `model.init` if None.
    anchor: center of the proximity term; needed if `proximity` is set.
    mask: parameters are multiplied by it at the start and after every step,
      e.g. 0 for weights that were pruned.

  Returns:
    `Fit(params, NonPrivateDualTrace)`.

  Reference:
    Fioretto et al. (2020), Lagrangian duality for constrained deep learning.
  """
  given = Given(examples, config, key, initial, anchor, mask)
  return train(LagrangianProgram(model, loss), given)


class _State(NamedTuple):
  params: Params
  optimizer: Any
  multipliers: jax.Array
  kept: Params
  excess: jax.Array  # violation beyond the tolerance, of what is kept
  loss: jax.Array  # of what is kept


class _Source(NamedTuple):
  primal: Any  # shuffles; None: all examples
  dual: Any


class PrimalFeed(NamedTuple):
  """The feed of one primal step."""

  rows: Any  # [batch]; None: all examples
  step: Any


class DualFeed(NamedTuple):
  """The feed of one dual step."""

  rows: Any  # [people]; None: all examples
  round: Any


class LagrangianProgram(RoundProgram):
  """Training under constraints without privacy."""

  def begin(self, given: Given) -> Begun:
    """Multipliers at zero, and shuffles of both steps' batches."""
    config, examples, params = given.config, given.examples, self.start(given)
    shape = jax.eval_shape(
      functools.partial(self._violations, config), params, examples
    ).value.shape
    worst = jnp.asarray(jnp.inf)
    optimizer = optimizer_of(config).init(params)
    state = _State(params, optimizer, jnp.zeros(shape), params, worst, worst)
    return Begun(state, self._source(given), given)

  def _source(self, given: Given) -> _Source:
    config, size, rounds = given.config, given.examples.size, given.config.rounds
    steps = ((config.batch_size, rounds * config.steps_per_round), (config.dual_size, rounds))
    return _Source(
      *(
        None
        if batch is None
        else _batches.shuffles_for(size, batch, count, key=jax.random.fold_in(given.key, 1 + i))
        for i, (batch, count) in enumerate(steps)
      )
    )

  def rows(self, inputs: Given) -> int:
    """Rows of all batches of a round."""
    config = inputs.config
    return (config.batch_size or 1) * config.steps_per_round + (config.dual_size or 0)

  def feed(
    self, source: _Source, inputs: Given, start: Index, count: int
  ) -> tuple[PrimalFeed, DualFeed]:
    """Primal feeds [count, steps per round] and dual feeds [count]."""
    config, size = inputs.config, inputs.examples.size
    steps = config.steps_per_round
    first, shape = start * steps, (count, steps)
    rows = dual_rows = None
    if config.batch_size is not None:
      rows = _batches.batch_rows(source.primal, size, config.batch_size, count * steps, start=first)
      rows = rows.reshape(*shape, -1)
    if config.dual_size is not None:
      dual_rows = _batches.batch_rows(source.dual, size, config.dual_size, count, start=start)
    step = (first + jnp.arange(count * steps)).reshape(shape)
    return PrimalFeed(rows, step), DualFeed(dual_rows, start + jnp.arange(count))

  def sum(self, state: _State, feed: PrimalFeed, inputs: Given) -> tuple[Params, Any]:
    """The gradient of the Lagrangian on a batch, the mean loss and the empty groups."""
    people = _people(inputs, feed.rows)
    config = inputs.config

    def objective(params: Params) -> PyTree:
      scores = self.model.apply(params, people.x)
      loss = jnp.mean(self.loss(scores, people.y))
      if isinstance(config.constraint, Notion):
        found = config.constraint.soft(scores, people.y, people.group)
      else:
        found = _evaluated(config.constraint, params, people)
      price = jnp.sum(state.multipliers * found.value)
      extra = _regularizers.pull(params, config, inputs.anchor)
      return loss + price + extra, (loss, jnp.sum(found.people == 0))

    return jax.grad(objective, has_aux=True)(state.params)

  def update(
    self, state: _State, released: Params, seen: PyTree, feed: PrimalFeed, inputs: Given
  ) -> tuple[_State, Any]:
    """One step of the optimizer, which shrinks over the training."""
    config, share = inputs.config, None
    if config.decay:
      passed = feed.step / (config.rounds * config.steps_per_round)
      share = 0.5 * (1 + jnp.cos(jnp.pi * passed))
    params, optimizer = descend(
      config, released, state.optimizer, state.params, mask=inputs.mask, share=share
    )
    return state._replace(params=params, optimizer=optimizer), seen

  def _violations(self, config: Any, params: Params, people: Examples) -> Violations:
    """The violations as measured."""
    if isinstance(config.constraint, Notion):
      scores = self.model.apply(params, people.x)
      return config.constraint.hard(scores, people.y, people.group)
    return _evaluated(config.constraint, params, people)

  def dual(self, state: _State, feed: DualFeed, inputs: Given) -> tuple[_State, Violations]:
    """Multipliers follow the violations."""
    config = inputs.config
    found = self._violations(config, state.params, _people(inputs, feed.rows))
    excess = found.measured - config.tolerance
    # Nobody there: no evidence, so the multiplier stays as it is.
    step = jnp.where(found.people > 0, config.dual_rate * excess, 0.0)
    return state._replace(multipliers=jnp.maximum(0.0, state.multipliers + step)), found

  def join(
    self, state: _State, infos: PyTree, found: Violations, feed: PyTree, inputs: Given
  ) -> tuple[_State, NonPrivateDualTrace]:
    """Remembers the best parameters so far."""
    losses, empty = infos
    loss, last = jnp.mean(losses), feed[0].step[-1]
    state = _keep(state, loss, found.measured, found.people, last, inputs.config)
    trace = (loss, found.measured, state.multipliers, found.people, jnp.sum(empty))
    return state, NonPrivateDualTrace(*trace)

  def finish(self, state: _State, infos: PyTree, inputs: Given) -> Fit:
    """The parameters that are kept."""
    del inputs
    return Fit(state.kept, infos)


def _people(inputs: Given, rows: PyTree) -> Examples:
  return inputs.examples if rows is None else _batches.look_up(inputs.examples, rows)


def _evaluated(constraint: Constraint | None, params: Params, people: Examples) -> Violations:
  """Evaluates the constraint, which may be a user's own function; None has no violations."""
  if constraint is None:
    none = jnp.zeros(0)
    return Violations(none, none, none)
  found = constraint(params, people)
  if isinstance(found, Violations):
    return found
  value = jnp.ravel(found)
  return Violations(value, value, jnp.full(value.shape, people.size))


def _keep(
  state: _State,
  loss: jax.Array,
  measured: jax.Array,
  people: jax.Array,
  last: jax.Array,
  config: LagrangianConfig,
) -> _State:
  """Remembers these parameters if they are better than those before."""
  if config.keep == "last" or not measured.size:
    return state._replace(kept=state.params)
  excess = jnp.max(jnp.where(people > 0, measured, 0.0)) - config.tolerance
  excess = jnp.maximum(0.0, excess)
  # First by the violation; within the tolerance, where it is 0, by the loss.
  less = (excess < state.excess) | (excess == state.excess) & (loss < state.loss)
  late = last >= 0.75 * config.rounds * config.steps_per_round - 1
  kept = (state.params, excess, loss), (state.kept, state.excess, state.loss)
  choose = functools.partial(jnp.where, late & less)
  params, excess, loss = jax.tree.map(choose, *kept)
  return state._replace(kept=params, excess=excess, loss=loss)
