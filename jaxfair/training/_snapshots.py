"""DP-SGD that remembers the parameters along its way, for analysis."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxfair import checks, tree
from jaxfair.training._dp_sgd import DpSgdProgram, DpSgdState
from jaxfair.training._dp_sgd_config import DpSgdConfig
from jaxfair.training._dp_sgd_trace import NonPrivateDpTrace
from jaxfair.training._program import Given, advance, begin, loop_for
from jaxfair.types import Examples, Key, Model, Params, PerExampleLoss, PyTree


class SnapshotFit(NamedTuple):
  """A training and its way there.

  Attributes:
    params: at the end; as private as `dp_sgd`'s.
    trace: not for release.
    snapshots: parameters at `steps`, stacked. The accountant covers all steps'
      parameters, so these are as private as the last.
    steps: [count + 1] after how many steps; the first is 0.
  """

  params: Params
  trace: NonPrivateDpTrace
  snapshots: Params
  steps: jax.Array


def dp_sgd_snapshots(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: DpSgdConfig = DpSgdConfig(),
  *,
  count: int,
  key: Key,
  update: Callable[[DpSgdConfig, Params], DpSgdConfig] | None = None,
) -> SnapshotFit:
  """`dp_sgd`, with the same steps from the same key, that also keeps snapshots of the parameters.

  Args:
    model: as in `dp_sgd`, and so the other arguments.
    loss: per example.
    examples: the private data.
    config: settings; `steps` must be a multiple of `count`.
    count: number of snapshots after the start.
    key: as in `dp_sgd`.
    update: `(config, params) -> config`, called after every snapshot: the settings of the steps
      that follow. It may change the weights of penalties, which are data fields.

  Privacy:
    As `dp_sgd`: `config.event(examples.size)` covers every snapshot. An `update` that reads
    snapshots and public people alone, and leaves clip bound, noise and sampling as they are, is
    post-processing of what the event covers.
  """
  checks.one_key("key", key)
  checks.integer("count", count, low=1)
  config.check(model, loss, examples)
  checks.require(
    config.steps % count == 0,
    f"steps={config.steps} is not a multiple of count={count}; snapshots are equally spaced",
  )
  program, given = DpSgdProgram(model, loss), Given(examples, config, key)
  loop, start = loop_for(program, given), begin(program, given)
  length = config.steps // count

  def segment(carried: tuple[DpSgdState, DpSgdConfig | None], first: int | jax.Array) -> PyTree:
    state, own = carried
    inputs = start.inputs if own is None else start.inputs._replace(config=own)
    begun = start._replace(state=state, inputs=inputs)
    begun, trace = advance(program, begun, count=length, start=first, loop=loop)
    params = program.params_of(begun.state)
    if update is not None and own is not None:
      own = update(own, params)
    return (begun.state, own), (params, trace)

  settings = None if update is None else jax.tree.map(jnp.asarray, start.inputs.config)
  if loop == "scan":
    firsts = length * jnp.arange(count)
    end, (after, traces) = jax.lax.scan(segment, (start.state, settings), firsts)
  else:
    end, kept = (start.state, settings), []
    for index in range(count):
      end, found = segment(end, length * index)
      kept.append(found)
    after, traces = tree.stack(kept)
  snapshots = jax.tree.map(
    lambda first, rest: jnp.concatenate([first[None], rest]), start.state.params, after
  )
  trace = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), traces)
  steps = jnp.arange(count + 1) * length
  return SnapshotFit(program.params_of(end[0]), trace, snapshots, steps)
