"""Shared parts of private methods: how a plan is built, and how `fit` is released."""

import pathlib
from collections.abc import Sequence
from typing import Any, cast

import jax

from jaxfair import accounting, checks, models, training, tree
from jaxfair.data._splitting import MIN_PART
from jaxfair.methods._method import PERSON, SCALING, Method, Plan, Population, Sizes, network_of
from jaxfair.methods._released import Released
from jaxfair.methods._releasing import release_once
from jaxfair.pate._attribute import Protection
from jaxfair.privacy._exact_coins import BitSource
from jaxfair.types import Fit, Key, Params

RECORD = ("a person's whole record",)
FIGURES = "figures measured on test people, which are not part of the release"
TUNING = "settings that were chosen by looking at results on these people"
NUMBER = "the number of people, which is taken to be public"
NOT_PROTECTED = (NUMBER, SCALING, FIGURES, TUNING)


class PrivateMethod:
  """A method with a price; its `plan` ends in `_planned`."""

  name = ""
  relation = accounting.Relation.REPLACE_ONE
  scales: frozenset[str] = frozenset()

  def fit(self, plan: Plan, data: Population, *, key: Key) -> Fit:
    """Computes the model with noise from the key."""
    raise NotImplementedError

  def fit_many(self, plans: Sequence[Plan], data: Population, *, key: Key) -> Fit:
    """Fits several plans for the same people, stacked; a method may share work between them.

    Privacy:
      For studies: models that share randomness are covered by their plans one
      by one, not together.
    """
    return tree.stack([self.fit(plan, data, key=key) for plan in plans])

  def check_people(self, plan: Plan, data: Population) -> None:
    """Raises for people whom the settings do not fit; see `Method`."""

  def release(
    self, plan: Plan, data: Population, *, folder: str | pathlib.Path, key: Key | None = None
  ) -> Released:
    """Computes the model with randomness from the operating system; see `Method`."""
    self.check_people(plan, data)

    def compute(own: jax.Array, bits: BitSource, work: pathlib.Path) -> Params:
      return self._release(plan, data, own, bits, work)

    def rehearse(own: jax.Array, work: pathlib.Path) -> Params:
      return self._rehearse(plan, data, own, work)

    own = cast(Method, self)
    return release_once(own, plan, data, folder=folder, key=key, compute=compute, rehearse=rehearse)

  def _release(
    self, plan: Plan, data: Population, key: jax.Array, bits: BitSource, work: pathlib.Path
  ) -> Params:
    """The parameters, from a key and bits of exact noise that the operating system drew."""
    del bits, work
    return self.fit(plan, data, key=key).params

  def _rehearse(self, plan: Plan, data: Population, key: jax.Array, work: pathlib.Path) -> Params:
    """The parameters of a release with a key for tests."""
    del work
    return self.fit(plan, data, key=key).params

  def _protection(self, settings: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is protected, and what is not, in words."""
    del settings
    return RECORD, NOT_PROTECTED

  def _planned(
    self,
    settings: Any,
    sizes: Sizes,
    budget: accounting.Budget,
    config: Any,
    event: accounting.Event,
    says: str,
    **more: Any,
  ) -> Plan:
    """The plan with its price; `more` are fields of `Plan` that not every method has."""
    spent = accounting.composed_guarantee(
      [event], delta=budget.delta, relation=self.relation, unit=PERSON
    )
    return Plan(
      method=self.name,
      settings=settings,
      sizes=sizes,
      budget=budget,
      network=network_of(settings, sizes),
      loss=models.cross_entropy,
      config=config,
      event=event,
      guarantee=Protection(spent, *self._protection(settings)),
      says=(says, f"The model costs {spent}."),
      **more,
    )


def plain_config(settings: Any, steps: int, size: int, **more: Any) -> training.FitConfig:
  """A plain training on `size` people by the settings' learning rate and batch size."""
  return training.FitConfig(
    learning_rate=settings.learning_rate,
    steps=steps,
    batch_size=batch_or_all(settings.batch_size, size),
    **more,
  )


def batch_or_all(batch_size: int, size: int) -> int | None:
  """The batch size, or None (everybody) where there are no more people."""
  return batch_size if batch_size < size else None


def people_per_teacher(settings: Any, sizes: Sizes) -> int:
  """The size of each teacher's part; raises if it is too small to learn from."""
  part = sizes.private // int(settings.num_teachers)
  checks.require(
    part >= MIN_PART,
    f"num_teachers={settings.num_teachers} leaves {part} people to each; "
    f"use at most {sizes.private // MIN_PART}",
  )
  return part
