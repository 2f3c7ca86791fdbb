"""Output perturbation: noise on the optimum of a convex objective."""

import pathlib
from typing import Literal

import jax

from jaxfair import accounting, checks, models, training
from jaxfair._fields import Positive
from jaxfair.methods._base import PrivateMethod
from jaxfair.methods._method import NetworkSettings, Plan, Population, Sizes, refuse_unfit
from jaxfair.methods._recipe import perturbed_optimum
from jaxfair.privacy._exact_coins import BitSource
from jaxfair.types import Fit, Key, Params


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


class OutputPerturbation(PrivateMethod):
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
    moved = config.sensitivity(models.cross_entropy, sizes.private)
    return self._planned(
      settings,
      sizes,
      budget,
      config,
      accounting.ApproxDp(*budget),
      f"One of {sizes.private} people moves the optimum by {moved:.3g} at most.",
      row_norm=settings.row_norm,
    )

  def fit(self, plan: Plan, data: Population, *, key: Key | None) -> Fit:
    """The optimum with noise from the key; from the operating system if None."""
    return training.output_perturbation(plan.model, plan.loss, data.private, plan.config, key=key)

  def _release(
    self, plan: Plan, data: Population, key: jax.Array, bits: BitSource, work: pathlib.Path
  ) -> Params:
    del key, work  # the noise is exact
    return training.output_perturbation(
      plan.model, plan.loss, data.private, plan.config, source=bits
    ).params
