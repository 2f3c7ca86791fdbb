"""Train to a privacy budget: calibrate, charge, train, resume."""

import contextlib
import dataclasses
import pathlib
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks, privacy
from jaxfair.training import _batches
from jaxfair.training._checkpoints import Checkpoints
from jaxfair.training._dp_sgd import DpSgdProgram, NonPrivateDpTrace
from jaxfair.training._dp_sgd_config import DpSgdConfig
from jaxfair.training._program import Begun, Given, advance, begin, loop_for, opened
from jaxfair.training._program_fingerprint import programs
from jaxfair.training._streaming import as_shapes
from jaxfair.types import Examples, Key, Model, Params, PerExampleLoss, Source

SEGMENTS = 10  # a training with a folder is saved this often


class PrivateFit(NamedTuple):
  """A model trained to a budget.

  Attributes:
    params: may be released, together with `guarantee`, if `for_release`.
    guarantee: what was spent, on whom, by which analysis.
    for_release: whether the noise came from the operating system. A key that
      the caller chose makes the run reproducible, and its noise guessable.
    config: the settings, with the calibrated noise.
    trace: not for release; None if a finished release was found in its
      folder, since it is erased there.
  """

  params: Params
  guarantee: accounting.PrivacyGuarantee
  for_release: bool
  config: DpSgdConfig
  trace: NonPrivateDpTrace | None


def calibrate(
  config: DpSgdConfig, num_examples: int, *, epsilon: float, delta: float
) -> DpSgdConfig:
  """The config with the batch cap and the noise that spend (epsilon, delta).

  Args:
    config: its `noise_multiplier` is replaced, and `max_batch` if None.
    num_examples: n, public.
    epsilon: epsilon of the budget.
    delta: delta of the budget; a thousandth of it pays for the cap on batches.
  """
  config.refuse_uncovered()
  checks.positive("epsilon", epsilon)
  checks.number("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True)
  sampler = _batches.poisson_sampler(
    num_examples,
    config.batch_size,
    config.steps,
    max_batch=config.max_batch,
    delta_share=1e-3 * delta,
  )
  config = dataclasses.replace(config, max_batch=sampler.max_batch)
  noise = accounting.calibrate_dp_sgd(
    epsilon=epsilon,
    delta=delta,
    sampling_rate=sampler.rate,
    steps=config.steps,
    dataset_size=num_examples,
    max_batch=sampler.max_batch,
  )
  for counts in config.noisy_counts():
    noise = counts.sum_multiplier(noise)
  return dataclasses.replace(config, noise_multiplier=noise)


def train_to_budget(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples | Source,
  config: DpSgdConfig = DpSgdConfig(),
  *,
  epsilon: float,
  delta: float,
  key: Key | None = None,
  initial: Params | None = None,
  folder: str | pathlib.Path | None = None,
  ledger: accounting.Ledger | None = None,
  dataset_ledger: accounting.DatasetLedger | None = None,
  data: str = "private data",
  keep_private: bool = False,
  progress: Callable[[int, int], None] = lambda done, total: None,
) -> PrivateFit:
  """Trains with DP-SGD so that the model costs at most (epsilon, delta).

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    examples: the private data, in memory or a `Source`; their number is public.
    config: settings; the noise is calibrated for its steps and batch size.
    epsilon: epsilon of the budget, for one person added or removed.
    delta: delta of the budget; well below 1/n.
    key: None takes a key from the operating system, as a release needs.
    initial: parameters to start from, independent of the private data.
    folder: keeps a ledger and checkpoints there; the same call continues a
      training that was stopped, to the same bits, and any other is refused.
    ledger: charges an existing ledger, with its own budget, instead of the folder's.
    dataset_ledger: charges the whole of a release to its data set as well, before anything else.
    data: the data set's name, for the ledger.
    keep_private: keeps the key, the checkpoints and the trace in the folder
      of a finished release. Anyone who reads them can subtract the noise.
    progress: called with `(steps done, steps in all)` after every segment.

  Returns:
    The model with its guarantee.

  Privacy:
    All steps are charged, as one event, before the first one is computed: a training that is killed
    has charged for steps that were never released, never the reverse. Steps computed again after a
    crash use the same keys, so they are the same release. Every call charges its ledger for the
    whole training, unless that ledger already has the charge: also a call that continues a folder,
    or finds it finished, with another ledger than before.

    When a release is finished, its parameters are written down and then its key, checkpoints and
    trace are erased (unlinked; the disk may still keep the contents of unlinked files).
  """
  program = DpSgdProgram(model, loss)
  people, source = opened(program, examples)
  config.check(model, loss, people)
  if key is not None:
    checks.one_key("key", key)
  size = people.size
  config = calibrate(config, size, epsilon=epsilon, delta=delta)
  people = jax.tree.map(jnp.asarray, people)
  training = _Training(program, people, config, initial, progress, source)
  trace: NonPrivateDpTrace | None
  with contextlib.ExitStack() as stack:
    if folder is None:
      chosen = privacy.os_key() if key is None else key
      for_release = key is None
      book = dataset_ledger if for_release else None
      training.charge(ledger, book, secrets.token_hex(8))
      params, trace = training.run(chosen, None)
    else:
      folder = pathlib.Path(folder)
      described = _described(config, epsilon, delta, size)
      store = Checkpoints(
        folder,
        described,
        (people if source is None else _digest(source), initial),
        key,
        programs=programs(model, loss, people, config),
      )
      for_release = store.for_release
      if ledger is None:
        path = folder / "ledger.jsonl"
        ledger = stack.enter_context(_open_ledger(path, data, epsilon, delta))
      book = dataset_ledger if for_release else None
      training.charge(ledger, book, store.run_id)
      params, trace = training.resume(store)
      if for_release and not keep_private:
        store.finish(params)
  guarantee = accounting.composed_guarantee([config.event(size)], delta=delta)
  return PrivateFit(params, guarantee, for_release, config, trace)


@dataclasses.dataclass(frozen=True)
class _Training:
  """Segments of a training: computed and saved, one after the other."""

  program: DpSgdProgram
  examples: Examples
  config: DpSgdConfig
  initial: Params | None
  progress: Callable[[int, int], None]
  source: Source | None

  def charge(
    self, ledger: accounting.Ledger | None, book: accounting.DatasetLedger | None, run_id: str
  ) -> None:
    """Charges the whole training to a ledger and to its data set, once."""
    event, id = self.config.event(self.examples.size), f"{run_id}: DP-SGD"
    if ledger is not None:
      ledger.charge(event, id=id)
    if book is not None:
      relation = accounting.Relation.ADD_OR_REMOVE_ONE
      book.charge(event, id=id, relation=relation)

  def resume(self, store: Checkpoints) -> tuple[Params, NonPrivateDpTrace | None]:
    """What is left to do in a folder: nothing, if its release is finished."""
    if not store.finished:
      return self.run(store.key, store)
    like = jax.eval_shape(
      lambda key: self.program.params_of(self.begin(key).state), jax.random.key(0)
    )
    return store.released(like), None

  def begin(self, key: Key) -> Begun:
    """The training before its first step."""
    return begin(self.program, Given(self.examples, self.config, key, self.initial))

  def run(self, key: Key, store: Checkpoints | None) -> tuple[Params, NonPrivateDpTrace]:
    """From the newest checkpoint to the end."""
    steps, begun = self.config.steps, self.begin(key)
    loop = loop_for(self.program, Given(self.examples, self.config, key))
    length = steps if store is None else -(-steps // SEGMENTS)
    done, parts = 0, []
    if store is not None and store.latest():
      done = store.latest()
      state, trace = store.load(done, self._shapes(begun, done))
      begun, parts = begun._replace(state=state), [trace]
    while done < steps:
      count = min(length, steps - done)
      begun, trace = advance(
        self.program, begun, count=count, start=done, loop=loop, source=self.source
      )
      parts.append(trace)
      done += count
      if store is not None:
        store.save(done, (begun.state, _joined(parts)))
      self.progress(done, steps)
    return self.program.params_of(begun.state), _joined(parts)

  def _shapes(self, begun: Begun, done: int) -> Any:
    """Shapes of a checkpoint after `done` steps."""
    begun = begun._replace(inputs=as_shapes(begun.inputs))
    begun, trace = jax.eval_shape(lambda b: advance(self.program, b, count=done), begun)
    return begun.state, trace


def _digest(source: Source) -> np.ndarray:
  """What stands for the people of a source in a checkpoint's fingerprint."""
  return np.frombuffer(source.fingerprint().encode(), np.uint8)


def _joined(parts: list[NonPrivateDpTrace]) -> NonPrivateDpTrace:
  # On the host: every number of segments would be another program.
  return jax.tree.map(lambda *leaves: jnp.asarray(np.concatenate(leaves)), *parts)


def _open_ledger(path: pathlib.Path, data: str, epsilon: float, delta: float) -> accounting.Ledger:
  if path.exists():
    return accounting.Ledger.open(path)
  return accounting.Ledger.create(
    path, data=data, relation=accounting.Relation.ADD_OR_REMOVE_ONE, budget=(epsilon, delta)
  )


def _described(config: DpSgdConfig, epsilon: float, delta: float, size: int) -> dict[str, Any]:
  """What must not change when a training is continued."""
  numbers = ("learning_rate", "l2_clip", "noise_multiplier", "weight_decay")
  fixed = ("steps", "batch_size", "max_batch", "method", "per_layer", "rule", "rescale")
  recipe = ("views", "chunk_size", "average")
  return {
    "epsilon": epsilon,
    "delta": delta,
    "examples": size,
    **{name: float(getattr(config, name)) for name in numbers},
    **{name: getattr(config, name) for name in (*fixed, *recipe)},
    "adaptive": str(config.adaptive),
    **({} if config.group_rule is None else {"group_rule": str(config.group_rule)}),
  }
