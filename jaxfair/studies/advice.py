"""What to try for the group that pays: the command that does it, and its price in privacy."""

from collections.abc import Mapping, Sequence
from typing import Any

SAME_EPSILON = "It costs no more epsilon"
TEACHERS = ("pate", "confident_pate", "fairpate", "pate_s_pre", "pate_s_in")
PRIVATE_GROUPS = ("sf_pate_s", "sf_pate_t", "randomized_groups", "private_lagrangian")
GRADIENTS = ("clipped_rate", "gradient_norm")

# What to do about a study's payer, where its rows name no method.
OF_STUDY = {
  "pruning": (
    "prune with the groups' risks held together, `jaxfair run "
    "configs/pruning/fair_ethnicity.toml`. Pruning spends no privacy, and neither does this."
  ),
  "decisions": (
    "pay what the bias takes, `jaxfair run configs/decisions/fig_2_8.toml`. The payments are "
    "computed from released counts, so they cost money but no epsilon."
  ),
  "pate": (
    "students of noisy shares instead of noisy winners, `jaxfair run "
    f"configs/pate/soft_labels.toml`. {SAME_EPSILON} by the bound for any votes."
  ),
  "dp_erm": (
    "a penalty on the groups' risks, measured on public people, `jaxfair run "
    f"configs/dp_erm/public_penalty.toml`. {SAME_EPSILON}, but public people with known groups."
  ),
}


def advise(
  study: str,
  values: Mapping[str, Any],
  setting: Mapping[str, Any],
  reasons: Sequence[Any],
  command: str,
) -> str:
  """What to try first in one setting."""
  told = _advice(study, values, setting, reasons, command)
  if values.get("release_epsilon") and command in told:
    told += " The command also releases another model, which is charged in addition."
  return told


def _advice(
  study: str,
  values: Mapping[str, Any],
  setting: Mapping[str, Any],
  reasons: Sequence[Any],
  command: str,
) -> str:
  family, method = study.partition(".")[0], str(setting.get("method", ""))
  if family in OF_STUDY:
    return OF_STUDY[family]
  settings = values.get("settings")  # of methods; another study may call a number so
  own = settings.get(method, {}) if isinstance(settings, Mapping) else {}
  key = f"settings.{method}"
  reason = reasons[0].column if reasons else ""
  if method == "dp_sgd" and reason not in GRADIENTS:
    public = values.get("public_csv") or values.get("public_fraction")
    more = "" if public else " --set public_csv=PUBLIC.csv"
    return (
      f"the penalty of FairDP-SGD, `{command} --set 'methods=[\"fair_dp_sgd\"]'{more} --out "
      f"runs/next`. {SAME_EPSILON}, but needs public people with known groups"
      f"{'.' if public else ', here the file PUBLIC.csv.'}"
    )
  if method in ("dp_sgd", "fair_dp_sgd"):
    return _larger_clip(command, f"{key}.l2_clip", own)
  if method in TEACHERS and reason == "refused_rate":
    return (
      f"a wider margin, `{command} --set {key}.max_gap={2 * own.get('max_gap', 0.1):g} --out "
      "runs/next`. It costs no epsilon: margins are judged by released labels; it costs fairness."
    )
  if method in TEACHERS:
    return (
      f"fewer queries with less noise on each, `{command} --set {key}.queries=100 --out "
      f"runs/next`, or DP-SGD at the same budget. {SAME_EPSILON}."
    )
  if method in PRIVATE_GROUPS:
    return (
      f"a wider tolerance, `{command} --set {key}.tolerance=0.05 --out runs/next`. {SAME_EPSILON}; "
      "it costs fairness."
    )
  doubled = [2 * epsilon for epsilon in values.get("epsilons", [])] or [2.0]
  return (
    f"a larger budget, `{command} --set epsilons={doubled} --out runs/next`. It costs privacy: "
    "epsilon doubles."
  )


def _larger_clip(command: str, key: str, own: Mapping[str, Any]) -> str:
  return (
    f"a larger clip bound, `{command} --set {key}={2 * own.get('l2_clip', 1.0):g} --out "
    f"runs/next`. {SAME_EPSILON}: the noise grows with the bound, so lower the learning rate if "
    "the loss gets worse."
  )
