"""What the defaults of `jaxfair train` keep at epsilon 1 of what a plain model gains.

    python benchmarks/defaults.py [--epsilon 1] [--seeds 3] [--method dp_sgd] [--held-out]

Gain is balanced accuracy minus that of a constant, 1 / C. Nothing is tuned: features are scaled by
what is bought from the budget, and the recipe chooses everything else. The plain model is the same
network, trained without privacy on the same people. Takes about four CPU minutes. `--held-out`
measures sets that no constant of the recipe was fitted on.
"""

import argparse

import jax
import numpy as np

from jaxfair import data, methods, models
from jaxfair import experiments as ex
from jaxfair.data import _inventory
from jaxfair.experiments import _people
from jaxfair.fairness import _confusion
from jaxfair.methods._buying import seeded_bits
from jaxfair.studies.methods import Config

BAR, LEAST_GAIN = 0.8, 0.05
NAMED = ("adult", "bank", "compas", "credit", "wine", "abalone", "stroke", "segmentation")
HELD_OUT = ("fetal", "celeba", "section203_alaska")
FILES = {  # read as files of one's own
  "churn": {"label": "Churn", "group": "gender", "positive": "Yes", "drop": ("customerID",)},
  "insurance": {"label": "OUTCOME", "group": "GENDER", "drop": ("ID", "POSTAL_CODE")},
}


def all_people() -> dict[str, ex.People]:
  """The named sets, and two files."""
  found = {name: ex.People(name) for name in NAMED}
  for name, options in FILES.items():
    paths = _inventory.describe(name).paths
    assert paths, f"{name} is not here: jaxfair data fetch {name}"
    found[f"{name} (file)"] = ex.People(name=name, csv=str(paths[0]), **options)
  return found


def balanced_accuracy(config: Config, people: data.Dataset, method: str, seed: int) -> float:
  """Of one model on test people."""
  key = jax.random.key(seed)
  key_split, key_buy = jax.random.split(key)
  parted, plan = config.parted(
    people,
    method,
    config.epsilons[0],
    key=key_split,
    buy=lambda plan, x: plan.buy(x, source=seeded_bits(key_buy)),
  )
  fitted = methods.get(method).fit(plan, parted.population, key=jax.random.fold_in(key, 1))
  scaler = parted.population.scaler
  assert scaler is not None
  x = scaler.apply(parted.test.x)
  if plan.row_norm is not None:
    x = data.bound_rows(x, plan.row_norm)
  predicted = np.asarray(models.predict(plan.model, fitted.params, x))
  counts = _confusion.confusion_counts(
    parted.test.y,
    predicted,
    sensitive_features=np.zeros_like(predicted),
    num_groups=1,
    num_classes=people.num_classes,
  )
  return float(np.mean([counts[0, c, c] / counts[0, c].sum() for c in range(people.num_classes)]))


def main() -> None:
  """Prints the table; ends with 1 if the bar is missed."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--epsilon", type=float, default=1.0)
  parser.add_argument("--seeds", type=int, default=3)
  parser.add_argument("--method", default="dp_sgd")
  parser.add_argument("--public", type=float, default=0.0, help="share taken to be public")
  parser.add_argument("--held-out", action="store_true", help="sets the recipe was not fitted on")
  args = parser.parse_args()
  print("| data | n | d | constant | plain | private | gain kept |\n|---|---|---|---|---|---|---|")
  missed = []
  sets = {name: ex.People(name) for name in HELD_OUT} if args.held_out else all_people()
  for name, own in sets.items():
    people, _ = _people.load_people(own)
    config = Config(data=own, epsilons=(args.epsilon,), public_fraction=args.public)
    plain, private = (
      np.array([balanced_accuracy(config, people, method, s) for s in range(args.seeds)])
      for method in ("plain", args.method)
    )
    constant = 1 / people.num_classes
    gain = plain.mean() - constant
    kept = (private.mean() - constant) / gain
    counted = gain >= LEAST_GAIN
    told = f"{100 * kept:.0f}%" if counted else f"not counted: the gain is {100 * gain:.1f} points"
    x = people.examples.x
    print(
      f"| {name} | {round(len(x) * config.fractions[1]):,} | {x.shape[1]} | {constant:.3f} "
      f"| {_told(plain)} | {_told(private)} | {told} |",
      flush=True,
    )
    missed += [name] if counted and kept < BAR else []
  if missed:
    raise SystemExit(f"below {100 * BAR:.0f}%: {', '.join(missed)}")


def _told(values: np.ndarray) -> str:
  return (
    f"{values.mean():.3f} ± {values.std(ddof=1):.3f}" if len(values) > 1 else f"{values[0]:.3f}"
  )


if __name__ == "__main__":
  main()
