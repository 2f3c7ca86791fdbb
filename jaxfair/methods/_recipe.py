"""Default settings of private methods, from public numbers alone.

A setting that is None is chosen here, from the number of people n, the number of classes, the
network and the budget; a value that was given is kept. No rule looks at a person, so the choice
costs no privacy. The constants were fitted on public data sets: docs/private_training.md tells how
and what they reach.
"""

import dataclasses
import math
from typing import Any

from jaxfair.accounting import Budget, zcdp_budget
from jaxfair.methods._method import Sizes

LARGEST_BATCH = 32_768
MOST_SCORED = 10_000  # public people; more cost time and memory, and add little


def fill(settings: Any, **chosen: Any) -> Any:
  """The settings with each None replaced by what was chosen for it."""
  missing = {name: value for name, value in chosen.items() if getattr(settings, name) is None}
  return dataclasses.replace(settings, **missing)


def default_delta(size: int) -> float:
  """The largest power of ten that is at most one tenth of 1 / n.

  A delta of 1 / n would allow publishing one person's record; the tenth keeps away from it.
  """
  return 10.0 ** -math.ceil(math.log10(10 * size))


def noisy_descent(settings: Any, sizes: Sizes, budget: Budget) -> Any:
  """Few steps on large batches, with momentum and rows of norm one.

    steps = 60 sqrt(n epsilon / 5000), from 10 to 400
    batch = n / 4, at most 32,768

  The noise on the sum of all steps grows as steps / (n epsilon) at a fixed rate, so the number of
  steps grows more slowly than n epsilon. Networks with hidden layers start from random weights of
  their own scale: their rows stay as they are, and their rate is smaller.
  """
  linear = settings.network == "logistic"
  steps = 60 * math.sqrt(sizes.private * budget.epsilon / 5000)
  batch = min(LARGEST_BATCH, max(min(256, sizes.private), sizes.private // 4))
  return fill(
    settings,
    steps=int(min(400, max(10, steps))),
    batch_size=batch,
    learning_rate=6.0 if linear else 0.5,
    optimizer="momentum",
    row_norm=1.0 if linear else 0.0,
  )


def perturbed_optimum(settings: Any, sizes: Sizes, budget: Budget) -> Any:
  """lambda = 60 / (n epsilon): the noise on a score is about a quarter."""
  return fill(settings, weight_decay=min(1.0, 60 / (sizes.private * budget.epsilon)))


def voting_teachers(settings: Any, sizes: Sizes, budget: Budget) -> Any:
  """As many queries as noise of a third of the votes pays for.

    teachers = sqrt(16 n / epsilon), with 20 people each at least
    queries  = rho (teachers / 3)^2, for noise of teachers / 3 on every count

  rho is what the budget is worth in zCDP, and one answer costs 1 / sigma^2. Small budgets need
  many teachers, whose votes stand above the noise; large ones need good teachers.

  Rows of norm 4 at most, of features with unit variance: few people say little about rare
  categories, which have the longest rows, and linear teachers would vote by chance there.
  """
  teachers = round(math.sqrt(16 * sizes.private / budget.epsilon))
  teachers = max(2, min(sizes.private // 20, teachers))
  teachers = getattr(settings, "num_teachers", None) or teachers
  rho = zcdp_budget(epsilon=budget.epsilon, delta=budget.delta)
  queries = max(20, math.floor(rho * (teachers / 3) ** 2))
  linear = settings.network == "logistic"
  return fill(
    settings,
    num_teachers=teachers,
    queries=min(sizes.public, queries),
    batch_size=8192 if linear else 32,
    learning_rate=0.03 if linear else 0.01,
    weight_decay=0.005 if linear else 0.06,
    row_norm=4.0 if linear else 0.0,
  )


def scoring_teachers(settings: Any, sizes: Sizes) -> Any:
  """Teachers of five people of each class, at least ten in all, who score all public people.

  A teacher's scores are linear in its people up to their length, so small parts lose little, and
  the noise on the mean falls with the number of teachers.
  """
  part = max(10, 5 * sizes.classes)
  return fill(
    settings, num_teachers=max(2, sizes.private // part), queries=min(sizes.public, MOST_SCORED)
  )
