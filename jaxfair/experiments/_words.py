"""What columns and methods are called on pages, with units, in words for any reader."""

from collections.abc import Iterator, Mapping
from typing import Any

from jaxfair.experiments._table import Table

PEOPLE = "share of people"
UNITS = {
  "accuracy": f"accuracy ({PEOPLE} classified correctly)",
  "balanced_accuracy": "balanced accuracy (mean share found of each class)",
  "accuracy_cost": f"accuracy lost ({PEOPLE})",
  "accuracy_parity_difference": f"accuracy gap between groups ({PEOPLE})",
  "demographic_parity_difference": f"selection gap between groups ({PEOPLE})",
  "equalized_odds_difference": f"largest gap in error rates ({PEOPLE})",
  "loss": "loss (nats per person)",
  "loss_cost": "loss added (nats per person)",
  "excess_risk": "loss that privacy adds (nats per person)",
  "excess_loss": "loss that noise adds (nats per person)",
  "excess_errors": f"errors that noise adds ({PEOPLE})",
  "selection_rate": f"{PEOPLE} given the positive class",
  "true_positive_rate": "share of positives that are found",
  "false_positive_rate": "share of negatives predicted positive",
  "gap": f"gap between groups ({PEOPLE})",
  "raw_gap": f"gap without abstention ({PEOPLE})",
  "max_gap": f"margin between groups ({PEOPLE})",
  "coverage": f"coverage ({PEOPLE} who get an answer)",
  "epsilon": "epsilon (privacy budget; smaller protects more)",
  "sigma": "sigma (noise, in votes)",
  "teachers": "teachers (number)",
  "flip_probability": "probability that noise changes a label",
  "flip_rate": "share of labels that noise changed",
  "closeness": "closeness to the decision boundary (0 to 1)",
  "gradient_norm": "gradient norm (loss per unit of the parameters)",
  "input_norm": "input norm (scaled features)",
  "trace": "Hessian trace (curvature of the loss)",
  "step": "training step (number)",
  "clip": "clip bound (gradient norm)",
  "seconds": "time (seconds)",
  "count": "people (number)",
}
NAMES = {
  "majority_class": "majority class",
  "dp_sgd": "DP-SGD",
  "dp_sgd_global": "DPSGD-Global",
  "dp_sgd_f": "DPSGD-F",
  "dp_sgd_parity": "DP-SGD with parity",
  "fair_dp_sgd": "FairDP-SGD",
  "fair_dp_sgd_inside": "FairDP-SGD (inside)",
  "output_perturbation": "output perturbation",
  "pate": "PATE",
  "confident_pate": "Confident PATE",
  "soft_pate": "PATE with scores",
  "fair_soft_pate": "Fair PATE with scores",
  "fairpate": "FairPATE",
  "pate_s_pre": "PATE-S_pre",
  "pate_s_in": "PATE-S_in",
  "sf_pate_s": "SF-PATE_S",
  "sf_pate_t": "SF-PATE_T",
}
EXPLAINED = {
  "majority_class": "predicts the most frequent class for everybody; it learns nothing, so its "
  "gap and its epsilon are 0. A model that is no better is useless.",
  "plain": "training without privacy, for comparison.",
  "dp_sgd": "differentially private stochastic gradient descent: clips what one person can change "
  "in a training step and adds noise to every step.",
  "dp_sgd_global": "DP-SGD that scales all gradients by the same factor instead of clipping "
  "only the large ones.",
  "dp_sgd_f": "DP-SGD with a larger clip bound for groups with large gradients.",
  "dp_sgd_parity": "DP-SGD with a limit on the gap between groups, kept by noisy counts.",
  "fair_dp_sgd": "DP-SGD with a penalty on the gap between groups, measured on public people.",
  "output_perturbation": "trains without noise and adds noise to the finished model.",
  "pate": "private aggregation of teacher ensembles: models of disjoint parts of the people vote "
  "on public people under noise, and a student learns from the winners.",
  "confident_pate": "PATE that answers only where the votes agree.",
  "soft_pate": "PATE whose teachers score all public people at once: one noisy release, then a "
  "linear student.",
  "fair_soft_pate": "PATE with scores whose predictions keep a margin between groups.",
  "fairpate": "PATE that refuses answers that would widen the gap between groups.",
  "pate_s_pre": "PATE whose student learns from answers that keep the gap small.",
  "pate_s_in": "PATE whose student has a penalty on the gap between groups.",
  "sf_pate_s": "PATE with fair students, which protects each person's group.",
  "sf_pate_t": "PATE with fair teachers, which protects each person's group.",
  "randomized_groups": "fair training on groups that everybody reports with random errors.",
  "private_lagrangian": "fair training with noise wherever a person's group is used.",
  # Settings of studies that have names of their own.
  "SF_S-PATE": "SF-PATE with a fair student: teachers vote, with noise, on groups.",
  "SF_T-PATE": "SF-PATE with fair teachers, who vote, with noise, on labels.",
  "SF_S-PATE, these votes": "SF_S-PATE with the noise at which the votes that were cast cost "
  "epsilon; no guarantee.",
  "SF_T-PATE, these votes": "SF_T-PATE with the noise at which the votes that were cast cost "
  "epsilon; no guarantee.",
  "M": "fair training on groups that everybody reports with random errors (randomized response).",
  "M, corrected": "M with the random errors taken into account.",
  "PF-LD": "private and fair Lagrangian dual: fair training with noise wherever a group is used.",
  "PF-LD, coarse": "PF-LD with about ten times the noise, for a coarser bound on one person's "
  "effect.",
  "fair, not private": "fair training with the groups as they are, for comparison.",
  "entropy (paper)": "asks next for the column after which the decision is expected to be most "
  "certain.",
  "progress": "asks next for the column that is expected to lift the worst case most.",
  "importance": "asks everybody in the same order, the column that moves the model most first.",
  "optimum": "knows all answers beforehand and takes the fewest columns; nobody can ask like that.",
}
COLUMNS = {
  "epsilon": "privacy budget: how much the result may depend on one person. 0 reveals nothing "
  "about anybody, below 1 is strong, above 10 is weak.",
  "balanced_accuracy": "the mean over classes of the share that is found; a constant reaches one "
  "over the number of classes.",
  "demographic_parity_difference": "largest difference between groups in the share that is given "
  "the positive class.",
  "equalized_odds_difference": "largest difference between groups in true or false positive rates.",
  "leakage": "how many columns a person has to reveal until the decision is made.",
  "agreement": "share of people whose decision is the same as with all columns.",
  "violation": "how far the model is from the notion of fairness on this page; 0 is fair.",
  "accuracy_cost": "accuracy of the plain model minus that of the private one, on the same people.",
}


def words(column: str) -> str:
  """A column's name in words."""
  return column.replace("_", " ")


def label(value: object) -> str:
  """A cell value as a person writes it."""
  if isinstance(value, float):
    special = "none" if value != value else "infinite" if value == float("inf") else ""
    return special or f"{value:g}"
  return NAMES.get(str(value), str(value))


def named(setting: Mapping[str, Any]) -> str:
  """A setting in words: "DP-SGD, epsilon 1"."""
  known = {k: v for k, v in setting.items() if v not in ("", None) and v == v}
  told = [label(v) if isinstance(v, str) else f"{words(k)} {label(v)}" for k, v in known.items()]
  return ", ".join(told)


def number(value: float, digits: int = 3) -> str:
  """A number as people write it: 0.853, 12.3, 120,000, 3.1e-05."""
  value = float(value)
  if abs(value) >= 1000:
    return f"{value:,.0f}"
  if 0 < abs(value) < 10.0**-digits:
    return f"{value:.{digits - 1}g}"
  return f"{value:.{digits}f}" if abs(value) < 10 else f"{value:.{max(digits - 2, 0)}f}"


def glossary(table: Table) -> Iterator[tuple[str, str]]:
  """(name, what it means) of the columns and methods that a table has."""
  for column, meaning in COLUMNS.items():
    if column in table:
      yield words(column), meaning
  if "method" in table:
    for name in table.unique("method"):
      if name in EXPLAINED:
        yield label(name), EXPLAINED[name]
