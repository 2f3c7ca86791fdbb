"""The setting `plan_answers`: which predictions a released model offers to its margin."""

from typing import Any

import numpy as np

from jaxfair import checks, models
from jaxfair.fairness import _answer_plan
from jaxfair.fairness._known_labels import PARITY
from jaxfair.methods._method import Plan, Population
from jaxfair.types import Params


def answer_targets(plan: Plan, params: Params, data: Population) -> np.ndarray | None:
  """[C] shares of the classes that shown predictions aim at; None if not asked for.

  See `fairness._answer_plan.planned_targets`.

  Privacy:
    Computed from the released parameters and from features and groups of public people, none of
    which is private: post-processing, free. It reads no label and no private person.
  """
  if not getattr(plan.settings, "plan_answers", False):
    return None
  public = plan.bounded(data).public
  assert public is not None
  predicted = np.asarray(models.predict(plan.model, params, public.x))
  counts = np.zeros((plan.sizes.groups, plan.sizes.classes))
  np.add.at(counts, (np.asarray(public.group), predicted), 1)
  return _answer_plan.planned_targets(counts)


def refuse_unplanned(settings: Any) -> None:
  """Raises for a plan of answers without a margin that predictions are shown by."""
  kept = settings.max_gap is not None and settings.notion == PARITY
  checks.require(
    kept or not settings.plan_answers,
    "plan_answers plans predictions within a margin, and these settings keep none for "
    f"predictions; set max_gap and notion={PARITY!r}, or leave plan_answers out",
  )
