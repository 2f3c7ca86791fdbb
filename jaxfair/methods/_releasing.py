"""How every method releases: charge, compute, write down, erase.

folder/
  work/            not for release
    ledger.jsonl   what was charged, before anything was computed
    private/       key and checkpoints; erased when the release is finished
  release/         may leave it: see `released`
"""

import dataclasses
import datetime
import functools
import json
import pathlib
from collections.abc import Callable
from typing import Any

import jax

from jaxfair import accounting, checks, training
from jaxfair.methods._answer_plans import answer_targets
from jaxfair.methods._method import (
  PERSON,
  SCALING,
  Method,
  NetworkSettings,
  NotReleasableError,
  Plan,
  Population,
)
from jaxfair.methods._released import Released, load
from jaxfair.methods._sanitized import read_epsilons
from jaxfair.pate._attribute import AtTheseVotes, Protection
from jaxfair.privacy._clipping import refuse_debug_errors
from jaxfair.privacy._exact_coins import BitSource
from jaxfair.training import _hosts
from jaxfair.training._checkpoints import Checkpoints
from jaxfair.training._program_fingerprint import programs
from jaxfair.types import Key, Params

WORK, RELEASE, PRIVATE = "work", "release", "private"


def release_once(
  method: Method,
  plan: Plan,
  data: Population,
  *,
  folder: str | pathlib.Path,
  key: Key | None,
  compute: Callable[[jax.Array, BitSource, pathlib.Path], Params],
  rehearse: Callable[[jax.Array, pathlib.Path], Params],
) -> Released:
  """Releases what `compute` returns, exactly once.

  Args:
    method: whose release it is.
    plan: its price.
    data: the people.
    folder: folder of the release.
    key: for tests; from the operating system if None.
    compute: `(key, bits, work folder) -> parameters` with randomness that is fit for release; bits
      are for exact noise on the host.
    rehearse: computes them in its place with a key for tests.

  Privacy:
    The event is on the disk, in the release's own ledger and in that of the
    data set, before `compute` is called. Parameters are seen by nobody before
    they are written down, and what is written down is not computed again, with
    other noise: a run that was stopped has released one set of parameters, not two. Key and bits
    are those of the folder, so that a copy of it, such as a backup, gives the same parameters.
  """
  require_planned(plan, data)
  if key is None:
    refuse_debug_errors()
  require_scale(method, disk=data.source is not None, devices=data.mesh is not None)
  assert plan.event is not None
  place = _begun(plan, data, folder, key)
  store = Checkpoints(
    place,
    _described(plan),
    (data.private, data.public),
    key,
    programs=programs(plan.model, plan.loss, data.private, training.FitConfig()),
  )
  with _ledger(place / "ledger.jsonl", plan, data) as ledger:
    name = f"{store.run_id}: {method.name}"
    ledger.charge(plan.event, id=name)
    if data.ledger is not None and store.for_release:
      assert method.relation is not None
      data.ledger.charge(plan.event, id=name, relation=method.relation)
    if store.written:
      one = jax.ShapeDtypeStruct(plan.sizes.shape, data.private.x.dtype)
      like = jax.eval_shape(plan.model.init, jax.random.key(0), one)
      params = store.released(like)
    elif store.for_release:
      params = compute(store.key, store.bits, place)
    else:
      params = rehearse(store.key, place)
    if store.for_release:
      store.finish(params)
  return publish(plan, data, params, folder, for_release=store.for_release)


def release_training(
  plan: Plan,
  data: Population,
  config: training.DpSgdConfig,
  *,
  folder: str | pathlib.Path,
  key: Key | None,
) -> Released:
  """Releases a DP-SGD training, which keeps its own ledger and checkpoints."""
  require_planned(plan, data)
  assert plan.budget is not None
  place = pathlib.Path(_hosts.from_first(lambda: str(_begun(plan, data, folder, key))))
  fitted = training.train_to_budget(
    plan.model,
    plan.loss,
    data.people,
    config,
    epsilon=plan.budget.epsilon,
    delta=plan.budget.delta,
    key=key,
    folder=place,
    dataset_ledger=data.ledger,
    data=data.name,
    mesh=data.mesh,
  )
  params = fitted.params
  if data.mesh is not None and jax.process_count() > 1:
    params = _hosts.local(params, data.mesh)
  return publish(plan, data, params, folder, for_release=fitted.for_release)


def publish(
  plan: Plan, data: Population, params: Params, folder: str | pathlib.Path, *, for_release: bool
) -> Released:
  """Writes `folder / "release"`, or reads the one that is there.

  Of several processes the first one writes.
  """
  place = pathlib.Path(folder) / RELEASE
  settings = json.loads(json.dumps(_plain(plan.settings)))
  if _hosts.from_first(place.exists):  # a stopped run had come so far
    found = load(place)
    checks.require(
      (found.method, found.settings) == (plan.method, settings),
      f"{place} holds a release with other settings; choose another folder",
    )
    return found
  assert plan.guarantee is not None
  told = _with_preparation(plan, data)
  made = Released(
    method=plan.method,
    settings=settings,
    network=plan.network,
    params=params,
    guarantee=dataclasses.replace(
      told,
      # How the features were prepared is known better than that it is taken to be public.
      not_protected=(
        *(what for what in told.not_protected if what != SCALING or not data.assumed_public),
        *data.assumed_public,
      ),
      for_release=for_release,
      at_votes=_at_votes(plan, pathlib.Path(folder) / WORK),
    ),
    class_names=data.class_names,
    group_names=data.group_names,
    shape=plan.sizes.shape,
    dtype=str(data.private.x.dtype),
    encoder=data.encoder,
    scaler=data.scaler,
    row_norm=plan.row_norm,
    abstention=plan.abstention,
    answer_targets=answer_targets(plan, params, data),
    data_name=data.name,
    spending=_spending(data, told.guarantee.delta) if for_release else (),
    intended_use=data.intended_use,
    released_on=datetime.date.today().isoformat(),
  )
  _hosts.from_first(lambda: made.save(place))
  return made


def _at_votes(plan: Plan, work: pathlib.Path) -> AtTheseVotes | None:
  """The sanitized figure that the plan has bought, of the epsilons that the method wrote down."""
  sanitizing = getattr(plan.config, "sanitizing", None)
  if sanitizing is None:
    return None
  found = read_epsilons(work)
  assert found is not None
  assert plan.budget is not None
  return AtTheseVotes(found["sanitized"], plan.budget.delta, sanitizing.confidence)


def _with_preparation(plan: Plan, data: Population) -> Protection:
  """The guarantee of the model and of what was bought to prepare its features, together.

  Priced at twice the plan's delta, of which preparation has the other half: by the accountant, or
  by adding up epsilons and deltas, whichever is less.
  """
  assert plan.guarantee is not None
  if data.bought is None:
    return plan.guarantee
  assert plan.event is not None
  own = plan.guarantee.guarantee
  priced = functools.partial(accounting.composed_guarantee, relation=own.relation, unit=own.unit)
  whole = priced([data.bought, plan.event], delta=2 * own.delta)
  alone = priced([data.bought], delta=own.delta)
  epsilon = min(whole.epsilon, own.epsilon + alone.epsilon)
  return dataclasses.replace(plan.guarantee, guarantee=dataclasses.replace(whole, epsilon=epsilon))


def _spending(data: Population, delta: float) -> tuple[str, ...]:
  """What everything that was released from the data set cost, in words, at the release's delta."""
  if data.ledger is None:
    return ()
  told = []
  for spent in data.ledger.spent(delta):
    limit = spent.budget
    told.append(
      f"{spent}; "
      + (
        "no limit is set"
        if limit is None
        else f"the limit is epsilon {limit.epsilon:g} at delta {limit.delta:g}"
      )
    )
  return tuple(told)


def refuse_release(method: Method) -> Released:
  """Raises: no guarantee covers a baseline."""
  raise NotReleasableError(
    f"{method.name} is a baseline without privacy, and its model may reveal the people it was "
    "trained on; release a private method instead"
  )


def _begun(
  plan: Plan, data: Population, folder: str | pathlib.Path, key: jax.Array | None
) -> pathlib.Path:
  """The part of a release's folder that must not be published.

  A release that the data set's budget does not pay for is refused before
  anything is written; one that has begun is charged already.
  """
  folder = pathlib.Path(folder)
  if key is None and data.ledger is not None and not (folder / WORK).exists():
    assert plan.event is not None
    assert plan.guarantee is not None
    data.ledger.require_affordable(plan.event, relation=plan.guarantee.guarantee.relation)
  folder.mkdir(parents=True, exist_ok=True)
  return folder / WORK


def _ledger(path: pathlib.Path, plan: Plan, data: Population) -> accounting.Ledger:
  if path.exists():
    return accounting.Ledger.open(path)
  assert plan.guarantee is not None
  return accounting.Ledger.create(
    path,
    data=data.name,
    unit=PERSON,
    budget=plan.budget,
    relation=plan.guarantee.guarantee.relation,
  )


def _described(plan: Plan) -> dict[str, object]:
  """What must not change when a release is continued."""
  assert plan.budget is not None
  return {
    "method": plan.method,
    "epsilon": plan.budget.epsilon,
    "delta": plan.budget.delta,
    **plan.sizes._asdict(),
    **_plain(plan.settings),
  }


def _plain(settings: NetworkSettings) -> dict[str, Any]:
  """Settings that can be written down. Two custom optimizers are told apart by their programs."""
  found = {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}
  own = found.get("optimizer")
  if own is not None and not isinstance(own, str):
    found["optimizer"] = "own"
  return found


def require_scale(method: Method, *, disk: bool, devices: bool) -> None:
  """Raises for a method that cannot train on people on disk, or over several devices."""
  checks.require(
    not disk or "disk" in method.scales,
    f"{method.name} reads all people at once, and these are on disk; choose a method that reads "
    "them batch by batch, such as dp_sgd",
  )
  checks.require(
    not devices or "devices" in method.scales,
    f"{method.name} cannot share a release between devices; leave devices out, or choose a method "
    "that can, such as dp_sgd",
  )


def require_planned(plan: Plan, data: Population) -> None:
  """Raises if the people are not those that the plan was priced for."""
  checks.require(
    plan.sizes == data.sizes,
    f"the plan is for {plan.sizes}, and these people are {data.sizes}; plan again with data.sizes",
  )
