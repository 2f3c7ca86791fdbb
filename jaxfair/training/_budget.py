"""Train to a privacy budget: calibrate, charge, train, resume."""

import contextlib
import dataclasses
import hashlib
import pathlib
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxfair import accounting, checks, privacy
from jaxfair.privacy._clipping import refuse_debug_errors
from jaxfair.training import _hosts, _peers
from jaxfair.training._checkpoints import Checkpoints
from jaxfair.training._dp_sgd import DpSgdProgram
from jaxfair.training._dp_sgd_config import DpSgdConfig
from jaxfair.training._dp_sgd_trace import NonPrivateDpTrace
from jaxfair.training._program import opened
from jaxfair.training._program_fingerprint import programs
from jaxfair.training._segments import Training
from jaxfair.types import Examples, Key, Model, Params, PerExampleLoss, Source

SHARDS = 64  # into which people are dealt for a mesh


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
  sampler = config.sampler(num_examples, 1e-3 * delta)
  config = dataclasses.replace(config, max_batch=sampler.max_batch)
  noise = accounting.calibrate_dp_sgd(
    epsilon=epsilon,
    delta=delta,
    sampling_rate=sampler.rate,
    steps=config.steps,
    dataset_size=num_examples,
    max_batch=sampler.max_batch,
    shards=config.shards,
    bands=config.bands,
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
  mesh: jax.sharding.Mesh | None = None,
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
    mesh: devices that share the training, as in `dp_sgd`; a config without `shards` gets 64, or
      fewer for few people. A folder can be continued with another number of devices. Under
      `jax.distributed` all processes make the same call, on a mesh of all their devices: the first
      one keeps the ledger and the folder, and nobody computes a step before the charge is on disk.

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

    Of several processes the first draws the key from the operating system and sends it to the
    others, over the network that the collectives use.
  """
  people, source = opened(DpSgdProgram(model, loss), examples)
  if mesh is not None and config.shards is None:
    config = dataclasses.replace(config, shards=shards_for(people.size))
  config.check(model, loss, people)
  if key is None:
    refuse_debug_errors()
  else:
    checks.one_key("key", key)
  size = people.size
  config = calibrate(config, size, epsilon=epsilon, delta=delta)
  program = DpSgdProgram.on(mesh, model, loss, examples, config, initial)
  training = Training.of(program, people, config, initial, progress, source)
  trace: NonPrivateDpTrace | None
  with contextlib.ExitStack() as stack:
    stack.enter_context(_hosts.together(_remedy(folder)))
    stack.enter_context(_peers.watched(_remedy(folder)))
    described = _described(config, epsilon, delta, size)
    told = {**described, "digest of the key": None if key is None else _digest(key)}
    _hosts.require_same(told, "make the same call in all processes")
    if folder is None:
      chosen = _hosts.key_from_first(privacy.os_key) if key is None else key
      for_release = key is None
      book = dataset_ledger if for_release else None
      _hosts.from_first(lambda: training.charge(ledger, book, secrets.token_hex(8)))
      params, trace = training.run(chosen, None)
    else:
      folder = pathlib.Path(folder)
      private = training.private()
      traced = programs(model, loss, people, config)

      def charged() -> Any:
        made = Checkpoints(folder, described, private, key, programs=traced)
        own = ledger
        if own is None:
          own = stack.enter_context(_open_ledger(folder / "ledger.jsonl", data, epsilon, delta))
        training.charge(own, dataset_ledger if made.for_release else None, made.run_id)
        return made.told()

      store = Checkpoints.joined(folder, _hosts.from_first(charged), private)
      for_release = store.for_release
      params, trace = training.resume(store)
      if for_release and not keep_private:
        training.finish(store, params)
  guarantee = accounting.composed_guarantee([config.event(size)], delta=delta)
  return PrivateFit(params, guarantee, for_release, config, trace)


def shards_for(num_examples: int) -> int:
  """How many shards n people are dealt to: 64, or the largest power of two that leaves two each."""
  return int(min(SHARDS, max(1, 2 ** ((num_examples // 2).bit_length() - 1))))


def _digest(key: Key) -> str:
  """Recognizes a key of the caller, which is not for release."""
  return hashlib.sha256(np.asarray(jax.random.key_data(key)).tobytes()).hexdigest()[:12]


def _remedy(folder: str | pathlib.Path | None) -> str:
  """What to do when a process is lost."""
  if folder is None:
    return "start all of them again; with folder= they would continue from a checkpoint"
  return f"start all of them again with the same call, which continues {folder}"


def _open_ledger(path: pathlib.Path, data: str, epsilon: float, delta: float) -> accounting.Ledger:
  if path.exists():
    return accounting.Ledger.open(path)
  return accounting.Ledger.create(
    path, data=data, relation=accounting.Relation.ADD_OR_REMOVE_ONE, budget=(epsilon, delta)
  )


def _described(config: DpSgdConfig, epsilon: float, delta: float, size: int) -> dict[str, Any]:
  """What must not change when a training is continued."""
  numbers = ("learning_rate", "l2_clip", "noise_multiplier", "weight_decay")
  fixed = ("steps", "batch_size", "max_batch", "shards", "method", "per_layer", "rule", "rescale")
  recipe = ("views", "chunk_size", "average")
  return {
    "epsilon": epsilon,
    "delta": delta,
    "examples": size,
    **{name: float(getattr(config, name)) for name in numbers},
    **{name: getattr(config, name) for name in (*fixed, *recipe)},
    "adaptive": str(config.adaptive),
    **({} if config.group_rule is None else {"group_rule": str(config.group_rule)}),
    **({} if config.bands == 1 else {"bands": config.bands}),
  }
