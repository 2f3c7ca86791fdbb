"""FairPATE, PATE-S_pre and PATE-S_in: answers and students within a margin.

All three judge by released labels and groups of public people, so fairness
costs no privacy here; it costs labels.
"""

import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, training
from jaxfair.fairness import _counter_sequence
from jaxfair.methods._gradients import margin
from jaxfair.methods._method import Plan, Population
from jaxfair.methods._pate_settings import (
  FairPateSettings,
  FairSettings,
  PenaltySettings,
  TeacherSettings,
)
from jaxfair.methods._teachers import ConfidentPate
from jaxfair.methods._vote_rules import confident_rule, fair_answers, total_rho
from jaxfair.training import _regularizers
from jaxfair.types import Examples


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

  def _noisy(
    self, plan: Plan, data: Population, votes: np.ndarray, *, key: jax.Array
  ) -> np.ndarray:
    assert data.public is not None
    rule = margin(plan.settings)
    assert rule is not None
    groups, truth = np.asarray(data.public.group)[: len(votes)], self._known(plan, data)
    choice = plan.settings.choice
    found = fair_answers(plan, votes, groups, plan.sizes.groups, rule, choice, key, truth)
    return np.asarray(found.labels)

  def _answers(
    self, plan: Plan, data: Population, votes: np.ndarray, folder: pathlib.Path, key: jax.Array
  ) -> np.ndarray:
    """With discrete noise from the release's key, which is erased at the end.

    No answer is seen before the student is written down, so there is no log
    of answers to keep.
    """
    del folder
    return self.labels(plan, data, votes, key=key)


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

  def _kept(self, plan: Plan, data: Population, labels: np.ndarray) -> np.ndarray:
    assert data.public is not None
    rule = margin(plan.settings)
    assert rule is not None
    kept = _counter_sequence.admit_in_order(
      jnp.asarray(labels),
      jnp.asarray(data.public.group)[: len(labels)],
      rule,
      num_groups=plan.sizes.groups,
      num_classes=plan.sizes.classes,
      truth=self._known(plan, data),
    )
    return np.asarray(kept.labels)


class PateSIn(ConfidentPate):
  """Confident answers, and a student with a penalty on its disparity.

  Privacy:
    The penalty reads parameters and public people: free.
  """

  name = "pate_s_in"
  needs: frozenset[str] = frozenset({"public", "public_groups"})
  settings: type[TeacherSettings] = PenaltySettings
  reference = "Learning to Walk Impartially on the Pareto Frontier, PATE-S_in"

  def _penalties(self, plans: Sequence[Plan], asked: Examples) -> tuple[_regularizers.Penalty, ...]:
    settings = plans[0].settings
    penalty = training.parity_penalty(
      plans[0].model,
      asked.x,
      asked.group,
      num_groups=plans[0].sizes.groups,
      lam=jnp.array([plan.settings.lam for plan in plans], jnp.float32),
      disparity=settings.disparity,
      sample=settings.sample,
      notion=settings.notion,
      labels=asked.y,
    )
    return (penalty,)
