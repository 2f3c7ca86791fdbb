"""Training under constraints: the Lagrangian dual method.

  primal:  theta goes down  mean loss + regularisers + sum_i mu_i v_i(theta)
  dual:    mu_i = max(0, mu_i + s (v_i(theta) - tolerance))

One round is some primal steps and one step of the multipliers mu. Without a
tolerance, and with v_i = |gap_i|, it is the papers' rule mu_i += s |gap_i|.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxfair import checks, tree
from jaxfair.fairness._notion import Notion, Violations
from jaxfair.training import _batches, _driver
from jaxfair.training._fit import check_anchor, penalty
from jaxfair.training._lagrangian_config import Constraint, LagrangianConfig
from jaxfair.training._optimizers import Optimizer
from jaxfair.training._round_feeds import RoundFeed, RoundFeeds, RoundSource, round_source
from jaxfair.types import Examples, Fit, Model, Params, PerExampleLoss


class NonPrivateDualTrace(NamedTuple):
  """What happened along a training, computed from the training data itself.

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
  key: jax.Array,
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
    anchor: centre of the proximity term; needed if `proximity` is set.
    mask: parameters are multiplied by it at the start and after every step,
      e.g. 0 for weights that were pruned.

  Returns:
    `Fit(params, NonPrivateDualTrace)`.

  Reference:
    Fioretto et al. (2020), Lagrangian duality for constrained deep learning.
  """
  config.check(model, loss, examples)
  check_anchor(config, anchor)  # type: ignore[arg-type]
  checks.one_key("key", key)
  traced = not checks.concrete((examples, config, key, initial, anchor, mask))
  loop = _driver.choose_loop(config.loop, model, examples.x, traced=traced)
  config = dataclasses.replace(config, loop=loop)
  run = _run_scan if loop == "scan" else _run_steps
  return run(model, loss, examples, config, key, initial, anchor, mask)


class _State(NamedTuple):
  params: Params
  optimizer: Any
  multipliers: jax.Array
  kept: Params
  excess: jax.Array  # violation beyond the tolerance, of what is kept
  loss: jax.Array  # likewise


class _Inputs(NamedTuple):
  examples: Examples
  config: LagrangianConfig
  anchor: Any
  mask: Any


@dataclasses.dataclass(frozen=True)
class _Problem:
  """Loss and violations: static parts only."""

  model: Model
  loss: PerExampleLoss
  constraint: Notion | Constraint | None

  def evaluate(self, params: Params, people: Examples) -> tuple[jax.Array, Violations]:
    """Mean loss, and what is differentiable of the violations."""
    scores = self.model.apply(params, people.x)
    loss = jnp.mean(self.loss(scores, people.y))
    if isinstance(self.constraint, Notion):
      return loss, self.constraint.soft(scores, people.y, people.group)
    return loss, _evaluated(self.constraint, params, people)

  def violations(self, params: Params, people: Examples) -> Violations:
    """The violations as measured."""
    if isinstance(self.constraint, Notion):
      scores = self.model.apply(params, people.x)
      return self.constraint.hard(scores, people.y, people.group)
    return _evaluated(self.constraint, params, people)


@dataclasses.dataclass(frozen=True)
class _Primal:
  """One step of the parameters, multipliers held fixed."""

  problem: _Problem
  optimizer: Optimizer

  def __call__(self, state: _State, feed: Any, inputs: _Inputs) -> tuple[_State, Any]:
    rows, number = feed
    config = inputs.config
    people = inputs.examples if rows is None else _batches.look_up(inputs.examples, rows)

    def objective(params: Params) -> Any:
      loss, found = self.problem.evaluate(params, people)
      price = jnp.sum(state.multipliers * found.value)
      extra = penalty(params, config, inputs.anchor)  # type: ignore[arg-type]
      return loss + price + extra, (loss, jnp.sum(found.people == 0))

    gradient, info = jax.grad(objective, has_aux=True)(state.params)
    updates, optimizer = self.optimizer(config.learning_rate).update(
      gradient, state.optimizer, state.params
    )
    if config.decay:
      passed = number / (config.rounds * config.steps_per_round)
      updates = tree.scale(0.5 * (1 + jnp.cos(jnp.pi * passed)), updates)
    params = optax.apply_updates(state.params, updates)
    params = _masked(params, inputs.mask)
    return state._replace(params=params, optimizer=optimizer), info


@dataclasses.dataclass(frozen=True)
class _Dual:
  """One step of the multipliers, parameters held fixed."""

  problem: _Problem

  def __call__(self, state: _State, feed: Any, inputs: _Inputs) -> tuple[_State, Any]:
    rows, _ = feed
    config = inputs.config
    people = inputs.examples if rows is None else _batches.look_up(inputs.examples, rows)
    found = self.problem.violations(state.params, people)
    excess = found.measured - config.tolerance
    # Nobody there: no evidence, so the multiplier stays as it is.
    step = jnp.where(found.people > 0, config.dual_rate * excess, 0.0)
    multipliers = jnp.maximum(0.0, state.multipliers + step)
    info = (found.measured, multipliers, found.people)
    return state._replace(multipliers=multipliers), info


@dataclasses.dataclass(frozen=True)
class _Round:
  """Some primal steps, then one dual step."""

  primal: _Primal
  dual: _Dual
  loop: Any

  def __call__(
    self, state: _State, feed: RoundFeed, inputs: _Inputs
  ) -> tuple[_State, NonPrivateDualTrace]:
    state, (loss, empty) = _driver.run_steps(
      self.primal, state, (feed.rows, feed.step), inputs, loop=self.loop
    )
    look = (feed.dual_rows, feed.step[0])
    if self.loop == "scan":
      state, found = self.dual(state, look, inputs)
    else:  # a program of its own
      look = jax.tree.map(lambda a: a[None], look)
      state, found = _driver.run_steps(self.dual, state, look, inputs, loop=self.loop)
      found = tree.take(found, 0)
    measured, multipliers, people = found
    state = _keep(state, jnp.mean(loss), measured, people, feed, inputs.config)
    return state, NonPrivateDualTrace(jnp.mean(loss), measured, multipliers, people, jnp.sum(empty))


@functools.partial(jax.jit, static_argnames=("model", "loss"))
def _run_scan(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: LagrangianConfig,
  key: jax.Array,
  initial: Any,
  anchor: Any,
  mask: Any,
) -> Fit:
  state, source, inputs = _begin(model, loss, examples, config, key, initial, anchor, mask)
  feeds = RoundFeeds.of(config, inputs.examples.size)
  state, trace = _driver.run_blocks(
    _round(model, loss, config), state, feeds, source, inputs, steps=config.rounds, rows=feeds.rows
  )
  return Fit(state.kept, trace)


def _run_steps(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: LagrangianConfig,
  key: jax.Array,
  initial: Any,
  anchor: Any,
  mask: Any,
) -> Fit:
  state, source, inputs = _begin(model, loss, examples, config, key, initial, anchor, mask)
  feeds = RoundFeeds.of(config, inputs.examples.size)
  step, traces = _round(model, loss, config), []
  for number in range(config.rounds):
    own = _driver.make(feeds, source, number, 1)
    state, trace = step(state, tree.take(own, 0), inputs)
    traces.append(trace)
  return Fit(state.kept, tree.stack(traces))


@functools.partial(jax.jit, static_argnames=("model", "loss"))
def _begin(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: LagrangianConfig,
  key: jax.Array,
  initial: Any,
  anchor: Any,
  mask: Any,
) -> tuple[_State, RoundSource, _Inputs]:
  examples = jax.tree.map(jnp.asarray, examples)
  if initial is None:
    initial = model.init(jax.random.fold_in(key, 0), examples.x[0])
  params = _masked(initial, mask)
  problem = _Problem(model, loss, config.constraint)
  shape = jax.eval_shape(problem.violations, params, examples).value.shape
  state = _State(
    params,
    config.optimizer(config.learning_rate).init(params),
    jnp.zeros(shape),
    params,
    jnp.asarray(jnp.inf),
    jnp.asarray(jnp.inf),
  )
  return (state, round_source(config, examples.size, key), _Inputs(examples, config, anchor, mask))


def _evaluated(constraint: Constraint | None, params: Params, people: Examples) -> Violations:
  """Of somebody's own function; without one, no violations."""
  if constraint is None:
    none = jnp.zeros(0)
    return Violations(none, none, none)
  found = constraint(params, people)
  if isinstance(found, Violations):
    return found
  value = jnp.ravel(found)
  return Violations(value, value, jnp.full(value.shape, people.size))


def _round(model: Model, loss: PerExampleLoss, config: LagrangianConfig) -> _Round:
  problem = _Problem(model, loss, config.constraint)
  return _Round(_Primal(problem, config.optimizer), _Dual(problem), config.loop)


def _keep(
  state: _State,
  loss: jax.Array,
  measured: jax.Array,
  people: jax.Array,
  feed: RoundFeed,
  config: LagrangianConfig,
) -> _State:
  """Remembers these parameters if they are better than those before."""
  if config.keep == "last" or not measured.size:
    return state._replace(kept=state.params)
  excess = jnp.max(jnp.where(people > 0, measured, 0.0)) - config.tolerance
  excess = jnp.maximum(0.0, excess)
  # First by the violation; within the tolerance, where it is 0, by the loss.
  less = (excess < state.excess) | (excess == state.excess) & (loss < state.loss)
  late = feed.step[-1] >= 0.75 * config.rounds * config.steps_per_round - 1
  kept = (state.params, excess, loss), (state.kept, state.excess, state.loss)
  choose = functools.partial(jnp.where, late & less)
  params, excess, loss = jax.tree.map(choose, *kept)
  return state._replace(kept=params, excess=excess, loss=loss)


def _masked(params: Params, mask: Any) -> Params:
  return params if mask is None else jax.tree.map(jnp.multiply, params, mask)
