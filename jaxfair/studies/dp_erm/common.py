"""What the studies of chapter 3 share: its people, and their losses.

Every study about private risk minimisation (figures 3.x) trains many models on
one data set and looks at each group's loss. The people are standardised with
moments of all of them, as in the thesis. No epsilon covers these moments, so
nothing here is a release.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import analysis, checks, data, models
from jaxfair.experiments.people import People, load_people
from jaxfair.experiments.table import Table
from jaxfair.types import Examples, Model, Params

# The thesis's eight sets, and by what it tells groups apart.
GROUPS = {
  "adult": "white",
  "bank": "age",
  "wine": "colour",
  "abalone": "grown_sex",
  "parkinsons": "sex",
  "churn": "gender",
  "credit": "sex",
  "stroke": "gender",
}
MAJORITY, MINORITY = "majority", "minority"
LOSS = models.cross_entropy
Choose = Callable[[np.ndarray, jax.Array], np.ndarray]
SCALING_NOTE = (
  "The features were standardised with moments of all people, as in the "
  "thesis. No epsilon covers them: these models are for study, not for release."
)


class Sample(NamedTuple):
  """The people of one cell.

  Attributes:
    people: standardised features.
    dataset: where they come from; names and counts are there.
    public: other people of the same set, taken as public; maybe none.
  """

  people: Examples
  dataset: data.Dataset
  public: Examples | None = None

  @property
  def num_groups(self) -> int:
    """How many groups there are."""
    return self.dataset.num_groups

  @property
  def roles(self) -> list[str]:
    """Majority and minority, so that panels of several sets share colours."""
    names = list(self.dataset.group_names)
    if len(names) != 2:
      return names
    # Of the whole set: a sample may hold as many of both.
    sizes = list(self.dataset.group_sizes.values())
    first = sizes[0] >= sizes[1]
    return [MAJORITY, MINORITY] if first else [MINORITY, MAJORITY]


def check_sets(sets: Sequence[str], max_people: int | None) -> None:
  """Refuses names of no data set, and too small a number of people."""
  checks.require(bool(sets), "sets is empty; name at least one data set")
  for name in sets:
    checks.one_of("sets", name, data.names())
  if max_people is not None:
    checks.integer("max_people", max_people, low=50)


def cells_of(sets: Sequence[str]) -> list[dict[str, Any]]:
  """One cell per data set; a missing file is found before any work."""
  for name in sets:
    load(name)
  return [{"data": name} for name in sets]


def load(name: str) -> data.Dataset:
  """A data set, with the thesis's groups if it is one of its sets."""
  return load_people(People(name=name, group=GROUPS.get(name)))[0]


def draw_people(
  name: str,
  max_people: int | None,
  *,
  key: jax.Array,
  within_groups: bool = False,
  choose: Choose | None = None,
  public: int = 0,
) -> Sample:
  """Some people of a data set, or all of them, standardised.

  Args:
    name: of the data set.
    max_people: at most so many; None for all.
    key: which ones.
    within_groups: standardises each group by its own moments; whoever uses
      such a model must know the person's group.
    choose: picks the rows instead, from the groups of all people.
    public: so many are set apart as public, and only they are standardised by.
  """
  dataset = load(name)
  if public:
    return _draw_beside_public(dataset, max_people, public, key=key)
  if choose is None:
    size = min(max_people or dataset.size, dataset.size)
    (rows,) = data.split_rows(dataset.size, (size,), key=key)
  else:
    rows = choose(np.asarray(dataset.examples.group), key)
  people = dataset.examples.take(rows)
  x = people.x.reshape(len(rows), -1)  # images are rows of pixels here
  if within_groups:
    scaled = np.zeros_like(x)
    for group in np.unique(people.group):
      own = people.group == group
      scaled[own] = data.fit_scaler(x[own]).apply(x[own])
  else:
    scaled = data.fit_scaler(x).apply(x)
  people = people._replace(x=scaled)
  return Sample(jax.tree.map(jnp.asarray, people), dataset)


def _draw_beside_public(
  dataset: data.Dataset, max_people: int | None, public: int, *, key: jax.Array
) -> Sample:
  size = min(max_people or dataset.size, dataset.size - public)
  checks.require(
    size >= public,
    f"public_people={public} leaves {size} of the set's {dataset.size} people "
    "to train on; set fewer apart",
  )
  parts = data.split_rows(dataset.size, (size, public), key=key)
  people, others = (dataset.examples.take(rows) for rows in parts)
  flat = [part.x.reshape(part.size, -1) for part in (people, others)]
  scaler = data.fit_scaler(flat[1])
  people, others = (
    jax.tree.map(jnp.asarray, part._replace(x=scaler.apply(x)))
    for part, x in zip((people, others), flat, strict=True)
  )
  return Sample(people, dataset, others)


def group_losses(
  model: Model, params: Params, people: Examples, num_groups: int
) -> analysis.ByGroup:
  """Mean loss of every group, and of everybody."""
  losses = LOSS(model.apply(params, people.x), people.y)
  return analysis.mean_by_group(losses, people.group, num_groups)


def group_rows(
  sample: Sample,
  settings: Mapping[str, Any],
  axes: Mapping[str, Sequence[Any]],
  values: Mapping[str, Any],
) -> Table:
  """A table whose last axis is the sample's groups, with their roles."""
  names = sample.dataset.group_names
  table = Table.from_arrays(settings, {**axes, "group": names}, values)
  roles = dict(zip(names, sample.roles, strict=True))
  return table.plus(role=[roles[name] for name in table["group"]])
