"""FairPATE, PATE-S_pre and PATE-S_in: answers and students within a margin.

All three judge by released labels and groups of public people, so fairness
costs no privacy here; it costs labels.
"""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, fairness, training
from jaxfair.fairness import CounterRule
from jaxfair.methods._gradients import margin
from jaxfair.methods._method import Plan, Population
from jaxfair.methods._pate_settings import (
  FairPateSettings,
  FairSettings,
  PenaltySettings,
  TeacherSettings,
)
from jaxfair.methods._teachers import ConfidentPate, confident_rule, fair_answers, total_rho


class FairPate(ConfidentPate):
  """Answers where the teachers agree and the groups stay together.

  Privacy:
    Tests and argmaxes are charged whether or not their labels are given. The
    margin is judged by released labels and public groups, so it is free.
  """

  name = "fairpate"
  needs: frozenset[str] = frozenset({"public", "public_groups"})
  settings: type[TeacherSettings] = FairPateSettings
  reference = "Learning to Walk Impartially on the Pareto Frontier, Alg. 1"

  def _priced(
    self, settings: Any, queries: int, budget: accounting.Budget
  ) -> tuple[Any, accounting.Event]:
    rho = total_rho(budget)
    return confident_rule(settings, queries, rho), accounting.ZCdp(rho)

  def _abstention(self, settings: Any) -> CounterRule | None:
    return margin(settings)

  def _labels(
    self, plan: Plan, data: Population, counts: np.ndarray, *, key: jax.Array
  ) -> np.ndarray:
    assert data.public is not None
    assert plan.abstention is not None
    groups = np.asarray(data.public.group)[: len(counts)]
    found = fair_answers(
      plan, counts, groups, plan.sizes.groups, plan.abstention, plan.settings.choice, key
    )
    return np.asarray(found.labels)

  def _answers(
    self,
    plan: Plan,
    data: Population,
    counts: np.ndarray,
    folder: pathlib.Path,
    keys: dict[str, jax.Array],
  ) -> np.ndarray:
    """With discrete noise from the release's key, which is erased at the end.

    No answer is seen before the student is written down, so there is no log
    of answers to keep.
    """
    del folder
    return self._labels(plan, data, counts, key=keys["noise"])


class PateSPre(ConfidentPate):
  """Confident answers, filtered to a margin before the student sees them.

  Privacy:
    The filter reads released labels and public groups: free. Answers that it
    drops were paid for.
  """

  name = "pate_s_pre"
  needs: frozenset[str] = frozenset({"public", "public_groups"})
  settings: type[TeacherSettings] = FairSettings
  reference = "Learning to Walk Impartially on the Pareto Frontier, PATE-S_pre"

  def _abstention(self, settings: Any) -> CounterRule | None:
    return margin(settings)

  def _taught(
    self, plan: Plan, asked: Any, labels: np.ndarray
  ) -> tuple[np.ndarray, training.FitConfig]:
    assert plan.abstention is not None
    kept = fairness.admit_in_order(
      jnp.asarray(labels),
      jnp.asarray(asked.group),
      plan.abstention,
      num_groups=plan.sizes.groups,
      num_classes=plan.sizes.classes,
    )
    return super()._taught(plan, asked, np.asarray(kept.labels))


class PateSIn(ConfidentPate):
  """Confident answers, and a student with a penalty on its disparity.

  Privacy:
    The penalty reads parameters and public people: free.
  """

  name = "pate_s_in"
  needs: frozenset[str] = frozenset({"public", "public_groups"})
  settings: type[TeacherSettings] = PenaltySettings
  reference = "Learning to Walk Impartially on the Pareto Frontier, PATE-S_in"

  def _abstention(self, settings: Any) -> CounterRule | None:
    return margin(settings)

  def _taught(
    self, plan: Plan, asked: Any, labels: np.ndarray
  ) -> tuple[np.ndarray, training.FitConfig]:
    labels, student = super()._taught(plan, asked, labels)
    penalty = training.parity_penalty(
      plan.model,
      asked.x,
      asked.group,
      num_groups=plan.sizes.groups,
      lam=plan.settings.lam,
      disparity=plan.settings.disparity,
    )
    return labels, training.FitConfig(**{**vars(student), "penalty": penalty})
