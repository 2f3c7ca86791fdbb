"""Baselines without privacy: the plain model and the majority class."""

import pathlib
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, models, training
from jaxfair._fields import Count, NonNegative, Positive
from jaxfair.methods._base import plain_config
from jaxfair.methods._method import (
  NetworkSettings,
  Plan,
  Population,
  Sizes,
  network_of,
  refuse_unfit,
)
from jaxfair.methods._released import Network, Released
from jaxfair.methods._releasing import refuse_release
from jaxfair.types import Fit, Key

NOT_PRIVATE = "This model is not private: it may not be released."


class PlainSettings(NetworkSettings):
  """Settings of plain training; see `training.FitConfig`."""

  learning_rate: Positive = 0.003
  weight_decay: NonNegative = 0.0
  steps: Count = 1500
  batch_size: Count = 1024


class _Baseline:
  """What baselines share: they need nothing, and promise nothing."""

  protects = None
  relation = None
  needs: frozenset[str] = frozenset()
  scales: frozenset[str] = frozenset()
  traceable = True

  def check_people(self, plan: Plan, data: Population) -> None:
    """Anybody fits."""

  def release(
    self, plan: Plan, data: Population, *, folder: str | pathlib.Path, key: Key | None = None
  ) -> Released:
    """Raises: nothing protects the people behind a baseline."""
    del plan, data, folder, key
    return refuse_release(self)  # type: ignore[arg-type]


class Plain(_Baseline):
  """Training without privacy, to compare with."""

  name = "plain"
  scales = frozenset({"disk"})
  settings = PlainSettings
  reference = ""

  def plan(
    self, settings: PlainSettings, sizes: Sizes, budget: accounting.Budget | None = None
  ) -> Plan:
    """Looks at the settings; there is nothing to price."""
    refuse_unfit(self, settings, sizes, budget)
    config = plain_config(
      settings, settings.steps, sizes.private, weight_decay=settings.weight_decay
    )
    return _unpriced(self, settings, sizes, network_of(settings, sizes), config)

  def fit(self, plan: Plan, data: Population, *, key: Key) -> Fit:
    """Trains on the private people as they are."""
    people = data.people
    if data.source is not None and plan.config.batch_size is None:  # few: one batch is everybody
      people = data.source.take(np.arange(data.source.size))
    return training.fit(plan.model, plan.loss, people, plan.config, key=key)


class MajorityClass(_Baseline):
  """The class that most people have, for everybody.

  Its gap between groups is 0 and its balanced accuracy 1 / C: a model that is
  no better has learned nothing.
  """

  name = "majority_class"
  settings = NetworkSettings
  reference = ""

  def plan(
    self, settings: NetworkSettings, sizes: Sizes, budget: accounting.Budget | None = None
  ) -> Plan:
    """A constant is a logistic model without weights."""
    refuse_unfit(self, settings, sizes, budget)
    network = Network("logistic", sizes.classes)
    return _unpriced(self, settings, sizes, network, None)

  def fit(self, plan: Plan, data: Population, *, key: Key) -> Fit:
    """Counts the private people's classes."""
    one = jnp.zeros(plan.sizes.shape, data.private.x.dtype)
    empty = plan.model.init(key, one)
    counts = jnp.bincount(jnp.asarray(data.private.y), length=plan.sizes.classes)
    chosen = jnp.arange(plan.sizes.classes) == jnp.argmax(counts)
    return Fit({**empty, "b": chosen.astype(empty["b"].dtype)}, None)


def _unpriced(method: Any, settings: Any, sizes: Sizes, network: Network, config: Any) -> Plan:
  return Plan(
    method=method.name,
    settings=settings,
    sizes=sizes,
    budget=None,
    network=network,
    loss=models.cross_entropy,
    config=config,
    event=None,
    guarantee=None,
    says=(NOT_PRIVATE,),
  )
