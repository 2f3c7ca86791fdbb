"""`jaxfair explain`: who pays for a model's privacy, why, and what to try."""

import pathlib
from typing import TYPE_CHECKING, Annotated

import typer

from jaxfair.cli import _console

if TYPE_CHECKING:
  from jaxfair.studies.explanation import NonPrivateExplanation, Paid

WORDS = {
  "input_norm": "input norm",
  "gradient_norm": "gradient norm",
  "closeness": "closeness to the boundary",
  "trace": "Hessian trace",
}


def explain(
  folder: Annotated[pathlib.Path, typer.Argument(help="Directory of a finished `train` run.")],
) -> None:
  """Say which group pays for a model's privacy, why, and what to try first."""
  from jaxfair.studies.explanation import explain_run

  found = explain_run(folder)
  _print_groups(found)
  for line in sentences(found):
    typer.echo(line)


def sentences(found: "NonPrivateExplanation") -> list[str]:
  """Who pays, how much, through what, and what to try first."""
  which = found.groups.index(found.payer)
  ratio = found.factors[found.factor][which] / found.of_all[found.factor]
  lines = who_pays(found)
  terms = {name: float(value[which]) for name, value in found.terms.items()}
  told = ", ".join(f"{name} {value:.2g}" for name, value in terms.items())
  lines += [
    f"Through which term: {found.term} ({told} per step at this model).",
    f"Through which factor: {WORDS[found.factor]}, {ratio:.2f} times everybody's.",
    f"Try first: {_advice(found, ratio)}",
  ]
  if found.note:
    lines.append(found.note)
  lines.append("These numbers are computed without noise: not for release.")
  return lines


def who_pays(found: "NonPrivateExplanation | Paid") -> list[str]:
  """Who pays, and whether others pay less."""
  cost = found.costs[found.payer]
  first = (
    f"Who pays: {found.payer}. At epsilon {found.epsilon:g} privacy adds "
    f"{cost.loss:.4f} to its loss [{cost.low:.4f}, {cost.high:.4f}] and takes "
    f"{100 * cost.accuracy:.1f} points of accuracy."
  )
  if not found.apart.low > 0:
    return [first, "The groups' costs do not differ beyond chance with these seeds."]
  ends = (found.apart.estimate, found.apart.low, found.apart.high)
  more, low, high = map(float, ends)
  return [first, f"That is {more:.4f} more than the group that pays least [{low:.4f}, {high:.4f}]."]


def _advice(found: "NonPrivateExplanation", ratio: float) -> str:
  if found.factor == "input_norm" and ratio > 1.1:
    return (
      "scale the features so that groups do not differ in norm (clip or "
      "transform heavy tails), then train again."
    )
  if found.term == "clipping":
    return (
      f"a larger l2_clip: {found.l2_clip:g} is used, and a tenth of the "
      f"gradients of {found.payer} exceed {found.large_gradient:.2g}. The "
      "noise grows with it, so lower the learning rate if the loss gets worse."
    )
  if ratio > 1.1:
    return (
      "training.risk_penalty on public people with noise_weight=1, which draws "
      "the groups' closeness together."
    )
  return (
    f"less noise per step: a smaller l2_clip than {found.l2_clip:g}, or larger "
    "batches at the same epsilon."
  )


def _print_groups(found: "NonPrivateExplanation") -> None:
  heads = ["group", "loss cost", "accuracy cost", "clipping", "noise"]
  heads += ["clipped", *WORDS.values()]
  rows = []
  for i, name in enumerate(found.groups):
    cost = found.costs[name]
    rows.append(
      [
        name,
        f"{cost.loss:.4f}",
        f"{cost.accuracy:.4f}",
        *(f"{found.terms[term][i]:.2g}" for term in ("clipping", "noise")),
        f"{100 * found.clipped[i]:.0f}%",
        *(f"{found.factors[factor][i]:.3g}" for factor in WORDS),
      ]
    )
  _console.table(heads, rows)
