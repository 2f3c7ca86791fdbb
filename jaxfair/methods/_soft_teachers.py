"""PATE with scores: one release answers all queries, and everything after it is free.

Teachers score each class for each public person; the sum of their vectors, each of unit norm, gets
noise once. The student, its intercepts and its margin between groups are computed from the noisy
sum and from public people.
"""

import pathlib
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks
from jaxfair._fields import Count, NonNegative, Positive, Within
from jaxfair.data import partition
from jaxfair.fairness import CounterRule
from jaxfair.fairness._counter import Guard
from jaxfair.fairness._known_labels import PARITY, NotionName
from jaxfair.methods._base import RECORD, PrivateMethod, people_per_teacher
from jaxfair.methods._gradients import margin
from jaxfair.methods._method import NetworkSettings, Plan, Population, Sizes, refuse_unfit
from jaxfair.methods._recipe import scoring_teachers
from jaxfair.methods._teachers import NOT_PROTECTED
from jaxfair.pate import _public_space, _scores
from jaxfair.privacy._exact_coins import BitSource, keyed
from jaxfair.types import Fit, Key, Params


class SoftSettings(NetworkSettings):
  """Settings of teachers that give scores.

  Attributes:
    num_teachers: k; None gives each teacher five people of each class, at least ten in all.
    queries: public people that are asked about, the first ones; None asks about all, at most
      10,000. Their number does not change the price.
    shrinkage: how much the covariance of the public people is shrunk; see
      `pate._public_space.public_space`.
  """

  num_teachers: Count | None = None
  queries: Count | None = None
  shrinkage: Positive = 3.0

  def check(self) -> None:
    """Raises for other networks than a linear one."""
    super().check()
    checks.require(
      self.network == "logistic",
      f"network={self.network!r}, but the student of scores is linear; use network='logistic' "
      "here, or method='pate' for other networks",
    )


class FairSoftSettings(SoftSettings):
  """Settings of a student of scores within a margin between groups.

  Attributes:
    max_gap: gamma, the margin that predictions are shown by.
    min_count: M, people of a group before the margin is kept.
    disparity: which difference between groups; see `fairness.CounterRule`.
    guard: "table" keeps every disparity below the margin; "own" is the paper's test of the
      answered one alone.
    plan_answers: whether the shares of classes among shown predictions are planned on public
      people, so that the margin lets more be shown; see docs/fairpate.md.
  """

  max_gap: NonNegative = 0.1
  min_count: Annotated[int, Within(0)] = 50
  disparity: Literal["rest", "pairwise", "overall"] = "rest"
  guard: Guard = "table"
  plan_answers: bool = False

  @property
  def notion(self) -> NotionName:
    """The notion of fairness: the one that needs no true labels."""
    return PARITY


class Scoring(NamedTuple):
  """What is released, calibrated; `config` of these plans.

  Attributes:
    queries: public people that are asked about.
    noise: noise of scores and class counts.
  """

  queries: int
  noise: _scores.ScoreNoise


class SoftPate(PrivateMethod):
  """Sums of teachers' scores on public people, released once; a linear student fits them.

  Privacy:
    One Gaussian release of scores and class counts, for any votes; see `pate._scores.ScoreNoise`.
    Neither the number of queries nor anything the student does changes the price.
  """

  name = "soft_pate"
  protects: Literal["record"] = "record"
  needs: frozenset[str] = frozenset({"public"})
  settings: type[SoftSettings] = SoftSettings
  traceable = False  # parts, sums of integers and exact noise are computed on the host
  reference = "Papernot et al. 2018, with scores in place of votes"

  def plan(self, settings: Any, sizes: Sizes, budget: accounting.Budget | None) -> Plan:
    """Calibrates the noise of the one release."""
    refuse_unfit(self, settings, sizes, budget)
    assert budget is not None
    settings = scoring_teachers(settings, sizes)
    queries = settings.queries
    checks.integer(
      "queries", queries, low=2, high=sizes.public, remedy="queries are two public people or more"
    )
    part = people_per_teacher(settings, sizes)
    noise = _scores.score_noise(budget, queries, sizes.classes)
    return self._planned(
      settings,
      sizes,
      budget,
      Scoring(queries, noise),
      noise.event(queries, sizes.classes),
      f"{settings.num_teachers} teachers with {part} people each score {queries} public people "
      f"in one release; noise multiplier {noise.noise_multiplier:.4g}, for any scores.",
      abstention=self._abstention(settings),
    )

  def fit(self, plan: Plan, data: Population, *, key: Key) -> Fit:
    """Teachers, noise and student from one key."""
    checks.one_key("key", key)
    bits = np.asarray(jax.random.key_data(jax.random.fold_in(key, 1))).tobytes()
    return Fit(self._computed(plan, data, key, keyed(bits)), None)

  def _release(
    self, plan: Plan, data: Population, key: jax.Array, bits: BitSource, work: pathlib.Path
  ) -> Params:
    del work
    return self._computed(plan, data, key, bits)

  def _computed(self, plan: Plan, data: Population, key: jax.Array, source: BitSource) -> Params:
    """The student, with noise from a source of random bits."""
    assert data.public is not None
    classes, settings = plan.sizes.classes, plan.settings
    asked = np.asarray(data.public.x)[: plan.config.queries]
    space = _public_space.public_space(asked, shrinkage=settings.shrinkage)
    parts = partition(data.private, settings.num_teachers, key=jax.random.fold_in(key, 0))
    votes = _scores.score_votes(parts, space, num_classes=classes)
    counts = np.bincount(np.asarray(data.private.y), minlength=classes)
    released = plan.config.noise.release(votes, counts, source=source)
    student = _public_space.score_student(released.scores, released.class_counts, space)
    return jax.tree.map(jnp.asarray, student)

  def _abstention(self, settings: Any) -> CounterRule | None:
    """The margin that predictions are shown by."""
    del settings
    return None

  def _protection(self, settings: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    del settings
    return RECORD, NOT_PROTECTED


class FairSoftPate(SoftPate):
  """Scores are paid for once; then every answer is judged for free, by public groups.

  FairPATE pays for a label before it knows whether the margin allows it. Here all labels follow
  from one release, so that no refusal wastes budget.

  Privacy:
    As `SoftPate`: the margin reads released scores and groups of those who ask.
  """

  name = "fair_soft_pate"
  needs: frozenset[str] = frozenset({"public", "public_groups"})
  settings: type[SoftSettings] = FairSoftSettings
  reference = "Learning to Walk Impartially on the Pareto Frontier, with scores in place of votes"

  def _abstention(self, settings: Any) -> CounterRule | None:
    return margin(settings)

  def _protection(self, settings: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    del settings
    return RECORD, ("groups of those who ask for predictions", *NOT_PROTECTED)
