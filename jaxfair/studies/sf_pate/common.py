"""What the SF-PATE studies share: people, splits, and methods by the papers' names.

A repetition is a split of the people with teachers of its own. Training
people have public features and labels and a private group; test people
measure.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks, data, fairness, methods, models, tree
from jaxfair import experiments as ex
from jaxfair.accounting import Budget
from jaxfair.experiments import Count, Positive, _study
from jaxfair.experiments._measures import beside_constant
from jaxfair.methods._method import network_of
from jaxfair.methods._private_groups import NOTIONS, fair_students
from jaxfair.methods._sf_pate import SfPateSettings
from jaxfair.types import Examples, Params

SF_S, SF_T = "SF_S-PATE", "SF_T-PATE"
SF_S_OWN, SF_T_OWN = "SF_S-PATE, these votes", "SF_T-PATE, these votes"
M, M_CORRECTED, PF_LD = "M", "M, corrected", "PF-LD"
PF_LD_COARSE = "PF-LD, coarse"
PLAIN, FAIR = "plain", "fair, not private"
# Each name's method and settings; those without privacy have none.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
  SF_S: ("sf_pate_s", {}),
  SF_T: ("sf_pate_t", {}),
  SF_S_OWN: ("sf_pate_s", {}),
  SF_T_OWN: ("sf_pate_t", {}),
  M: ("randomized_groups", {}),
  M_CORRECTED: ("randomized_groups", {"corrected": True}),
  PF_LD: ("private_lagrangian", {}),
  PF_LD_COARSE: ("private_lagrangian", {}),
  PLAIN: ("", {}),
  FAIR: ("", {}),
}
STEP, STEPS = 1.05, 80  # of the search for the noise of a data-dependent epsilon
SMALLEST = 0.1  # share of a batch that the coarse sensitivity takes the smallest group to have
GENERALIZED = "generalized_demographic_parity"


class Config(SfPateSettings):
  """Settings of all studies of SF-PATE; those of its methods included."""

  sets: ex.Sweep[ex.People] = (ex.People(),)
  epsilons: ex.Sweep[Positive] = (0.5, 1.0, 2.0)  # for the group of one person
  delta: ex.Probability = 1e-5  # the same; randomized response has none
  train_people: Count = 100_000  # the largest number of them
  test_people: Count = 100_000
  l2_clip: Positive = 1.0  # of PF-LD
  splits: Count = 20  # repetitions; intervals are over them
  network: str = "mlp"
  hidden: tuple[Count, ...] = (32, 32)
  teacher_network: str = "logistic"
  queries: Count = 500

  def sizes(self, people: data.Dataset) -> tuple[int, int]:
    """Numbers of training and test people."""
    train = min(self.train_people, int(0.75 * people.size))
    remedy = "students learn from some of the training people"
    checks.integer("queries", self.queries, high=train, remedy=remedy)
    checks.integer("batch_size", self.batch_size, high=train)
    checks.require(
      train // self.num_teachers >= 10,
      f"num_teachers={self.num_teachers} leaves {train // self.num_teachers} people to each; use "
      f"at most {train // 10}",
    )
    return train, min(self.test_people, people.size - train)


@dataclasses.dataclass(frozen=True)
class Repetition:
  """One split, its key, and theta*: the model without groups, None until it is trained."""

  config: Config
  people: methods.Population
  test: Examples
  key: jax.Array
  start: Params = None

  def plans(self, name: str) -> list[methods.Plan]:
    """A plan of this method for each epsilon."""
    method, changes = METHODS[name]
    own: Any = methods.get(method)
    fields = [field.name for field in dataclasses.fields(own.settings)]
    told = {name: getattr(self.config, name) for name in fields if hasattr(self.config, name)}
    settings, delta = own.settings(**told | changes), self.config.delta

    def planned(epsilon: float) -> methods.Plan:
      return own.plan(settings, self.people.sizes, Budget(epsilon, delta))

    plans = [planned(epsilon) for epsilon in self.config.epsilons]
    if name in (SF_S_OWN, SF_T_OWN):
      counts = own.votes(plans[0], self.people, key=self.key).counts
      return [planned(_any_votes(planned, counts, one, delta)) for one in self.config.epsilons]
    return [_coarse(plan) for plan in plans] if name == PF_LD_COARSE else plans

  def train(self, name: str) -> Params:
    """One model of this method for each epsilon, stacked; all start from theta*."""
    count = len(self.config.epsilons)
    if name == PLAIN:
      return tree.repeat(self.start, count)
    if name == FAIR:  # as many as there are epsilons, all alike: M's program serves for both
      groups, key = tree.repeat(self.people.private.group, count), jax.random.fold_in(self.key, 1)
      plan = self.plans(M)[0]
      return fair_students(plan, self.people, groups, key=key, start=self.start).params
    own: Any = methods.get(METHODS[name][0])
    plans = self.plans(name)
    return own.fit_many(plans, self.people, key=self.key, start=self.start).params

  def started(self) -> "Repetition":
    """The same with theta*."""
    own: Any = methods.get("sf_pate_s")
    start = own.start(self.plans(SF_S)[0], self.people, key=self.key)
    return dataclasses.replace(self, start=start)

  def measure(self, stacked: Params) -> dict[str, np.ndarray]:
    """What [k] models do to test people of true groups, beside a constant."""
    model, test = network_of(self.config, self.people.sizes).model, self.test
    rows: list[dict[str, Any]] = []
    for index in range(len(jax.tree.leaves(stacked)[0])):
      scores = models.scores(model, tree.take(stacked, index), test.x)  # probabilities
      predicted = jnp.argmax(scores, axis=-1)
      found: dict[str, Any] = {
        "accuracy": jnp.mean(predicted == test.y),
        "violation": self._violation(scores),
      }
      rows.append(found | beside_constant(test.y, predicted, scores.shape[-1]))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}

  def _violation(self, scores: jax.Array) -> float:
    sizes, test = self.people.sizes, self.test
    if self.config.notion != GENERALIZED:
      notion = NOTIONS[self.config.notion](sizes.groups, sizes.classes)
      return float(notion.largest(scores, test.y, test.group))
    return float(
      fairness.wasserstein_disparity(
        scores[:, 1] if scores.shape[1] == 2 else scores,
        sensitive_features=test.group,
        num_groups=sizes.groups,
        skip_empty=True,
      )
    )


def _any_votes(
  planned: Callable[[float], methods.Plan], counts: Any, epsilon: float, delta: float
) -> float:
  """The largest epsilon for any votes whose noise costs `epsilon` at most at these votes.

  All noises in steps of 5% are tried: where votes agree, the data-dependent epsilon falls again as
  noise vanishes, since no label is ever flipped.

  Privacy:
    The noise is chosen by private votes, so neither number is a guarantee: it is what papers
    compare that print the data-dependent epsilon.
  """

  def cost(one: float) -> float:
    [sigma] = planned(one).config.sigmas
    return accounting.pate_diagnosis(counts, sigma=sigma, delta=delta).not_for_release

  steps = [epsilon * STEP**i for i in range(STEPS)]
  return max((one for one in steps[1:] if cost(one) <= epsilon), default=epsilon)


def _coarse(plan: methods.Plan) -> methods.Plan:
  """PF-LD with noise for a step's sensitivity of 2 C / (0.1 batch).

  One person's group moves the noisy sum by 2 C reach, with reach half the range of the groups'
  prices. Dividing by the smallest group of a batch, taken to be a tenth of it, moves it by
  2 C / 0.1 instead, as if reach were 10. Trainings here have a reach of about 1, so that is ten
  times the noise.
  """
  noise = float(plan.config.noise_multiplier) / SMALLEST
  return dataclasses.replace(plan, config=dataclasses.replace(plan.config, noise_multiplier=noise))


def splits(
  config: Config, cell: _study.Cell, context: _study.Context, *, more: int = 0
) -> Iterator[Repetition]:
  """One split after the other, without theta*; some more if asked."""
  people = context.load_rows(config.sets, cell["data"])
  made = ex.splits(people, config.sizes(people), config.splits + more, context)
  for (train, test), key in made:
    own = methods.Population(train, people.class_names, people.group_names, name=people.name)
    yield Repetition(config, own, test, key)


def study(name: str, summary: str, config: type, run: Any, **more: Any) -> ex.Study:
  """A study with one cell per data set, unless it says otherwise."""
  options = {"cells": ex.grid(data="sets"), "precheck": precheck, **more}
  return ex.Study(name, summary, config, run=run, **options)


def precheck(config: Config, *sets: data.Dataset) -> None:
  """Raises unless every set has people for all parts."""
  for people in sets:
    config.sizes(people)
