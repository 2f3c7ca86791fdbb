"""Does it matter how many people of a group there are? (figure 3.12)

Every seed draws people so that the groups have given ratios of sizes, and trains on them without
and with privacy. All trainings have the same number of people, so they share one program. The
intervals over seeds hold the draws of people, too.
"""

from collections.abc import Callable
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _fields, checks, data, training
from jaxfair import experiments as ex
from jaxfair.analysis import _by_group, _norms
from jaxfair.experiments import _claims, _study
from jaxfair.studies.dp_erm import common, networks
from jaxfair.training import _ensembles
from jaxfair.types import Examples, Params

Ratio = Annotated[float, _fields.Within(0.0, 1.0, open_low=True)]


class Config(networks.NetworkConfig):
  """Settings."""

  ratios: _fields.Compared[Ratio] = (
    0.1,
    0.3,
    1.0,
  )  # people of the minority per person of the majority
  people: int = 2000  # drawn for every ratio

  def check(self) -> None:
    """Batches are drawn from the people."""
    super().check()
    checks.integer("people", self.people, low=self.training.batch_size)


def _precheck(config: Config, *people: data.Dataset) -> None:
  """Every set has two groups, which are large enough for every ratio."""
  for one in people:
    sizes = [*one.group_sizes.values()]
    checks.require(len(sizes) == 2, f"{one.name} has {len(sizes)} groups; this study compares two")
    for ratio in config.ratios:
      major, minor = group_counts(config, ratio)
      checks.require(
        major <= max(sizes) and minor <= min(sizes),
        f"people={config.people} at ratio {ratio:g} needs {major} and {minor} people, but "
        f"{one.name} has {max(sizes)} and {min(sizes)}; ask for fewer people",
      )


def group_counts(config: Config, ratio: float) -> tuple[int, int]:
  """How many of the majority and of the minority."""
  minority = round(config.people * ratio / (1 + ratio))
  return config.people - minority, minority


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All ratios and seeds of one data set in one program."""
  sample, settings = common.draw(config, cell, context), config.training
  model = settings.model(sample.dataset.num_classes)
  choose = chooser(np.asarray(sample.people.group), config.people)

  def one(own: Any, people: Examples) -> Any:
    minority, key = own
    key_rows, key_plain, key_private = jax.random.split(key, 3)
    drawn = people.take(choose(minority, key_rows))

    def measured(params: Params) -> Any:
      losses = common.group_losses(model, params, drawn, sample.num_groups).group
      norms = _norms.gradient_norms(model, common.LOSS, params, drawn)
      by_group = _by_group.mean_by_group(norms, drawn.group, sample.num_groups).group
      return losses, by_group, common.beside_constant(model, params, drawn, sample.dataset)

    rule = settings.plain(config.people)
    plain = training.fit(model, common.LOSS, drawn, rule, key=key_plain).params
    private = training.dp_sgd(model, common.LOSS, drawn, settings.private(), key=key_private).params
    (before, _, scores), (after, norms, reached) = measured(plain), measured(private)
    values = {"excess_risk": after - before, "gradient_norm": norms}
    return {**values, **scores, networks.PRIVATE: reached["balanced_accuracy"]}

  # Seed i has the same keys at every ratio: the draws are nested, and compared in pairs.
  keys = jax.random.split(context.key, config.seeds)
  minorities = np.array([group_counts(config, ratio)[1] for ratio in config.ratios])
  pairs = np.indices((len(minorities), config.seeds)).reshape(2, -1)
  members = (minorities[pairs[0]], keys[pairs[1]])
  found = _ensembles.map_members(one, members, sample.people, chunk=_ensembles.default_chunk())
  shape = (len(minorities), config.seeds)
  values = {name: np.asarray(v).reshape(*shape, *v.shape[1:]) for name, v in found.items()}
  return sample.rows(cell, {"ratio": config.ratios, "seed": range(config.seeds)}, values)


def chooser(group: np.ndarray, count: int) -> Callable[[Any, jax.Array], jax.Array]:
  """`(people of the minority, key) -> rows` of this many people, without replacement."""
  larger, smaller = (np.flatnonzero(group == g) for g in np.argsort(-np.bincount(group)))

  def choose(minority: Any, key: jax.Array) -> jax.Array:
    key_larger, key_smaller = jax.random.split(key)
    few, many = (
      jnp.resize(jax.random.permutation(own, rows), (count,))
      for own, rows in ((key_smaller, smaller), (key_larger, larger))
    )
    place = jnp.arange(count)
    return jnp.where(place < minority, few, jnp.roll(many, minority))

  return choose


def _moved(column: str) -> _claims.Check:
  """In every group of every data set, the two end ratios differ by less than a quarter."""
  change = ex.difference(column, {"ratio": min}, {"ratio": max}, relative=True)
  return change.between(-0.25, 0.25).in_each("role").in_each("data")


STUDY = networks.study(
  name="dp_erm.sizes",
  summary="Does the relative size of a group decide what it pays?",
  config=Config,
  run=run,
  precheck=_precheck,
  claims={
    "risk: The relative size of the groups hardly moves their excess risk: by less than a quarter, "
    "in every group of every data set [Fig. 3.12]": _moved("excess_risk"),
    "norms: The relative size of the groups hardly moves their gradient norms: by less than a "
    "quarter, in every group of every data set [Fig. 3.12]": _moved("gradient_norm"),
  },
  figures=tuple(
    ex.lines(told, f"{y} ~ ratio, role | data", "At the end of training.", log="x")
    for told, y in (
      ("norms: Gradient norms and group sizes", "gradient_norm"),
      ("risks: Excess risk and group sizes", "excess_risk"),
    )
  ),
  titles={"ratio": "minority over majority"},
  summaries=(
    ex.summary(
      "At the end of training",
      f"gradient_norm, excess_risk, {networks.PRIVATE} ~ data, ratio, group",
    ),
  ),
)
