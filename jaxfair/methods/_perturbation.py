"""Output perturbation: noise on the optimum of a convex objective."""

import pathlib
from typing import Any, Literal

import jax

from jaxfair import accounting, checks, models, training
from jaxfair._fields import Positive
from jaxfair.methods._gradients import FIGURES, TUNING
from jaxfair.methods._method import (
  SCALING,
  NetworkSettings,
  Plan,
  Population,
  Sizes,
  network_of,
  refuse_unfit,
)
from jaxfair.methods._recipe import perturbed_optimum
from jaxfair.methods._released import Released
from jaxfair.methods._releasing import release_once
from jaxfair.pate import Protection
from jaxfair.types import Fit, Params


class OutputPerturbationSettings(NetworkSettings):
  """Settings of output perturbation.

  Attributes:
    weight_decay: lambda; the noise is proportional to 1 / (n lambda). None chooses it from n and
      the budget.
    row_norm: radius of the ball that features are projected into, at training
      and at prediction.
  """

  weight_decay: Positive | None = None
  row_norm: Positive = 1.0

  def check(self) -> None:
    """Raises for other networks than a linear one."""
    super().check()
    checks.require(
      self.network == "logistic",
      f"network={self.network!r}, but output perturbation needs a convex "
      "objective; use network='logistic'",
    )


class OutputPerturbation:
  """Trains to the optimum and adds noise to it, once."""

  name = "output_perturbation"
  protects: Literal["record"] = "record"
  relation = accounting.Relation.REPLACE_ONE
  needs: frozenset[str] = frozenset()
  settings = OutputPerturbationSettings
  traceable = False  # solved in float64, with exact noise, on the host
  reference = "Chaudhuri, Monteleoni and Sarwate 2011"

  def plan(
    self, settings: OutputPerturbationSettings, sizes: Sizes, budget: accounting.Budget | None
  ) -> Plan:
    """One release of (epsilon, delta)."""
    refuse_unfit(self, settings, sizes, budget)
    assert budget is not None
    settings = perturbed_optimum(settings, sizes, budget)
    assert settings.weight_decay is not None
    config = training.OutputPerturbationConfig(
      epsilon=budget.epsilon,
      delta=budget.delta,
      weight_decay=settings.weight_decay,
      row_norm=settings.row_norm,
    )
    event = accounting.ApproxDp(*budget)
    spent = accounting.composed_guarantee([event], delta=budget.delta, relation=self.relation)
    loss = models.cross_entropy
    moved = config.sensitivity(loss, sizes.private)
    return Plan(
      method=self.name,
      settings=settings,
      sizes=sizes,
      budget=budget,
      network=network_of(settings, sizes),
      loss=loss,
      config=config,
      event=event,
      guarantee=Protection(
        spent,
        ("a person's whole record",),
        ("the number of people, which is taken to be public", SCALING, FIGURES, TUNING),
      ),
      row_norm=settings.row_norm,
      says=(
        f"One of {sizes.private} people moves the optimum by {moved:.3g} at most.",
        f"The model costs {spent}.",
      ),
    )

  def fit(self, plan: Plan, data: Population, *, key: jax.Array) -> Fit:
    """The optimum with noise from the key."""
    return _perturbed(plan, data, key)

  def release(
    self, plan: Plan, data: Population, *, folder: str | pathlib.Path, key: jax.Array | None = None
  ) -> Released:
    """The optimum with exact noise from the operating system."""

    def compute(own: jax.Array, work: pathlib.Path) -> Params:
      del own, work
      return _perturbed(plan, data, None).params

    return release_once(self, plan, data, folder=folder, key=key, compute=compute)


def _perturbed(plan: Plan, data: Population, key: Any) -> Fit:
  return training.output_perturbation(plan.model, plan.loss, data.private, plan.config, key=key)
