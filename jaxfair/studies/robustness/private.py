"""Are private models easier to attack and to prune, and in which groups? (Chapter 8's question.)

The thesis asks for it and tests nothing of the kind: every claim is ours, written before any run.
"""

from typing import Annotated, Any

import jax
import numpy as np

from jaxfair import _fields, accounting, data, methods, models, pruning, robustness
from jaxfair import experiments as ex
from jaxfair.data._pooling import pool_images
from jaxfair.experiments import _claims, _measures, _study
from jaxfair.types import Examples, Model

PLAIN = "plain"
PRIVATE = ("dp_sgd", "pate", "soft_pate")
ALL = {"group": ex.EVERYONE}


class Config(ex.Settings):
  """Settings."""

  data: ex.People = ex.People("fashion_mnist", group="label")  # pixels in [0, 1]
  methods: ex.Sweep[Annotated[str, _fields.OneOf((PLAIN, *PRIVATE))]] = (PLAIN, *PRIVATE)
  epsilon: ex.Positive = 2.0  # of every private method
  delta: ex.Probability = 1e-5
  push: ex.Positive = 0.02  # of every pixel, by PGD
  rate: ex.Probability = 0.9  # share of the weights that go, without fine-tuning
  private_people: ex.Count = 20_000
  public_people: ex.Count = 2000
  test_people: ex.Count = 2000
  pool: ex.Count = 2  # images are averaged over squares of this many pixels a side
  attack_steps: ex.Count = 5
  seeds: ex.Count = 5


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All seeds of one method."""
  people, method = context.load(config.data), methods.get(str(cell["method"]))
  budget = accounting.Budget(config.epsilon, config.delta) if method.protects else None
  sizes, tables = (config.private_people, config.public_people, config.test_people), []
  for seed in range(config.seeds):
    rows = data.split_rows(people.size, sizes, key=jax.random.fold_in(context.shared_key, seed))
    private, public, test = (_flat(people.examples.take(own), config.pool) for own in rows)
    everybody = methods.Population(private, people.class_names, people.group_names, public=public)
    plan = method.plan(method.settings(), everybody.sizes, budget)
    key = jax.random.fold_in(context.key, seed)
    params = method.fit(plan, everybody, key=key).params
    model = _on_pixels(plan)
    masks = pruning.magnitude_masks(params, config.rate)
    pruned = jax.tree.map(lambda leaf, keep: leaf * keep, params, masks)
    how = robustness.pgd(robustness.LINF, input_range=(0.0, 1.0), steps=config.attack_steps)
    found = robustness.attack(model, params, test, how, epsilons=(config.push,), key=key)
    broken = np.asarray(found.success[0]).astype(bool)
    right, left = (np.asarray(models.predict(model, p, test.x)) == test.y for p in (params, pruned))
    told = {**cell, "seed": seed}
    values = [_measured(right[own], left[own], broken[own]) for own in _groups(test, people)]
    gaps = {f"{name}_gap": np.ptp([one[name] for one in values]) for name in values[0]}
    predicted = models.predict(model, params, test.x)
    learned = _measures.beside_constant(test.y, predicted, people.num_classes)
    everyone = _measured(right, left, broken) | gaps | {k: float(v) for k, v in learned.items()}
    names = zip(people.group_names, values, strict=True)
    tables += [{**told, "group": name, **own} for name, own in names]
    tables.append({**told, **ALL, **everyone})
  return ex.Table.from_rows(tables)


def _flat(people: Examples, side: int) -> Examples:
  x = pool_images(np.asarray(people.x), side)
  return people._replace(x=x.reshape(len(x), -1).astype(np.float32))


def _on_pixels(plan: methods.Plan) -> Model:
  """The model with the projection of its inputs, so that pushes are of pixels."""
  norm = plan.row_norm
  if norm is None:
    return plan.model
  return Model(
    plan.model.init, lambda params, x: plan.model.apply(params, data.bound_rows(x, norm))
  )


def _groups(test: Examples, people: data.Dataset) -> list[np.ndarray]:
  return [np.asarray(test.group) == group for group in range(people.num_groups)]


def _measured(right: np.ndarray, left: np.ndarray, broken: np.ndarray) -> dict[str, Any]:
  """Accuracy before and after pruning, and the share of right predictions that a push breaks."""
  return {
    "accuracy": float(right.mean()),
    "pruned_accuracy": float(left.mean()),
    "pruning_cost": float(right.mean() - left.mean()),
    "broken_share": float(broken[right].mean()) if right.any() else np.nan,
  }


def _more(column: str, table: ex.Table) -> dict[str, _claims.Check]:
  """Every private method has more of a column than the plain model, for everyone."""
  own = [name for name in table.unique("method") if name != PLAIN]
  plain = ALL | {"method": PLAIN}
  return {n: ex.difference(column, ALL | {"method": n}, plain) > 0 for n in own}


def _claim(column: str) -> _claims.Check:
  return _claims.every(lambda table: _more(column, table))


STUDY = ex.Study(
  name="robustness.private",
  summary="Are private models easier to attack and to prune, and in which groups?",
  config=Config,
  cells=ex.grid(method="methods"),
  run=run,
  plain={"method": PLAIN},
  claims={
    "attack: Pushes break more of the right predictions of every private model than of the plain "
    "one": _claim("broken_share"),
    "attack, groups: The groups of every private model differ more in what pushes break than "
    "those of the plain one": _claim("broken_share_gap"),
    "pruning: Pruning costs every private model more accuracy than the plain one": _claim(
      "pruning_cost"
    ),
    "pruning, groups: Pruning costs the groups of every private model more unequally than those "
    "of the plain one": _claim("pruning_cost_gap"),
  },
  figures=(
    ex.bars("broken: Right predictions that pushes break", "broken_share ~ group, method"),
    ex.bars("pruned: What pruning costs each group", "pruning_cost ~ group, method"),
  ),
  summaries=(
    ex.summary(
      "Everyone",
      "accuracy, broken_share, broken_share_gap, pruned_accuracy, pruning_cost_gap ~ method",
      ALL,
    ),
  ),
)
