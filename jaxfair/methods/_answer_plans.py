"""The setting `plan_answers`: which predictions a released model offers to its margin."""

from typing import Any

import numpy as np

from jaxfair import checks, models
from jaxfair.fairness import _answer_plan
from jaxfair.fairness._known_labels import PARITY
from jaxfair.methods._method import Plan, Population
from jaxfair.types import Params


def answer_shares(plan: Plan, params: Params, data: Population) -> np.ndarray | None:
  """[G, C] shares of the model's predictions to offer to the rule; None if not asked for.

  They are planned for 0.8 of the margin; see `fairness._answer_plan.planned_shares`.

  Privacy:
    Computed from the released parameters and from features and groups of public people, none of
    which is private: post-processing, free. It reads no label and no private person.
  """
  if not getattr(plan.settings, "plan_answers", False):
    return None
  public, rule = plan.bounded(data).public, plan.abstention
  assert public is not None
  assert rule is not None
  predicted = np.asarray(models.predict(plan.model, params, public.x))
  counts = np.zeros((plan.sizes.groups, plan.sizes.classes))
  np.add.at(counts, (np.asarray(public.group), predicted), 1)
  return _answer_plan.planned_shares(counts, _answer_plan.PLANNED_PART * float(rule.max_gap))


def refuse_unplanned(settings: Any) -> None:
  """Raises for a plan of answers without a margin that predictions are shown by."""
  kept = settings.max_gap is not None and settings.notion == PARITY
  checks.require(
    kept or not settings.plan_answers,
    "plan_answers plans predictions within a margin, and these settings keep none for "
    f"predictions; set max_gap and notion={PARITY!r}, or leave plan_answers out",
  )
