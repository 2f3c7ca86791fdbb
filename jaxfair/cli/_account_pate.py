"""`jaxfair account pate`: what noisy labels cost, given the votes."""

import pathlib
from typing import Annotated, Any

import typer

from jaxfair import checks


def pate(
  votes: Annotated[pathlib.Path, typer.Argument(help="A .npy of [queries, classes] counts.")],
  sigma: Annotated[float, typer.Option(help="Noise on each count (standard deviation).")],
  delta: Annotated[float, typer.Option(help="The delta of the guarantee.")],
  threshold: Annotated[
    float | None, typer.Option(help="Answer only where the largest count is above this.")
  ] = None,
  sigma_threshold: Annotated[
    float | None, typer.Option(help="Noise of the threshold test.")
  ] = None,
  max_answers: Annotated[
    int | None, typer.Option(help="A cap on answers, fixed before the first; default: no cap.")
  ] = None,
  num_classes: Annotated[
    int | None, typer.Option(help="VOTES holds [teachers, queries] class ids instead.")
  ] = None,
  discrete: Annotated[
    bool, typer.Option("--discrete", help="The noise is discrete Gaussian.")
  ] = False,
  sanitize: Annotated[
    bool,
    typer.Option(
      "--sanitize",
      help="Draw a figure for these votes that may be published; decide beforehand, since "
      "every epsilon includes its cost.",
    ),
  ] = False,
  consensus: Annotated[float, typer.Option(help="Guessed share of teachers that agree.")] = 0.9,
  confidence: Annotated[
    float, typer.Option(help="Probability that the sanitized epsilon is a bound.")
  ] = 0.999,
) -> None:
  """Compute what labels from noisy votes cost: for any votes, and for these."""
  from jaxfair import accounting, privacy
  from jaxfair.accounting import _guarantee

  checks.require(
    (threshold is None) == (sigma_threshold is None),
    "pass --threshold and --sigma-threshold together, or neither",
  )
  checks.require(
    max_answers is None or threshold is not None,
    "--max-answers goes with --threshold and --sigma-threshold",
  )
  counts = _counts(votes, num_classes)
  capped: dict[str, Any] = {"sigma_threshold": sigma_threshold, "max_answers": max_answers}
  tested: dict[str, Any] = {"threshold": threshold, **capped}
  # Everything that can be refused is computed before anything is printed.
  diagnosis = accounting.pate_diagnosis(
    counts, sigma=sigma, delta=delta, discrete=discrete, **tested
  )
  guarantee = accounting.composed_guarantee(
    accounting.pate_events(sigma=sigma, num_queries=len(counts), **capped),
    delta=delta,
    relation=accounting.Relation.REPLACE_ONE,
  )
  plan = sanitized = None
  if sanitize:
    plan = accounting.plan_sanitizing(
      num_queries=len(counts),
      num_teachers=int(counts[0].sum()),
      num_classes=counts.shape[1],
      sigma=sigma,
      delta=delta,
      consensus=consensus,
      confidence=confidence,
      **tested,
    )
  if plan is not None:
    sanitized = accounting.sanitized_epsilon(
      counts, sigma=sigma, delta=delta, plan=plan, discrete=discrete, key=privacy.os_key(), **tested
    )
    guarantee = sanitized.guarantee

  typer.echo(
    f"votes: {len(counts)} queries, {int(counts[0].sum())} teachers, {counts.shape[1]} classes"
  )
  typer.echo(_answers(counts, max_answers, threshold, sigma_threshold, discrete))
  typer.echo(f"for any votes (releasable): {guarantee}")
  typer.echo(
    "for these votes (diagnosis, NOT FOR PUBLICATION): epsilon "
    f"{_guarantee.round_up(diagnosis.not_for_release)}, delta {delta:g}"
  )
  if sanitized is not None:
    typer.echo(f"for these votes (publishable): {sanitized}")
    typer.echo(
      "  both publishable epsilons include the cost of that figure; every call draws and costs "
      "it again"
    )
  elif sanitize:
    typer.echo(
      f"no figure for these votes was drawn: at --consensus {consensus:g} it "
      "would not be below the epsilon for any votes"
    )


def _answers(
  counts: Any, most: int | None, threshold: float | None, sigma: Any, discrete: bool
) -> str:
  import numpy as np

  from jaxfair.accounting import _pate_threshold

  if threshold is None:
    return f"answered: all {len(counts)} (no threshold)"
  labels = len(counts) if most is None else min(most, len(counts))
  chance = _pate_threshold.log_answer_probability(
    counts, threshold=threshold, sigma=sigma, discrete=discrete
  )
  return (
    f"answered: {np.exp(chance).mean():.1%} expected (diagnosis, NOT FOR "
    f"PUBLICATION); charged: {len(counts)} tests, {labels} answers"
  )


def _counts(path: pathlib.Path, num_classes: int | None) -> Any:
  import numpy as np

  from jaxfair.accounting._votes import vote_table

  table = _load(path)
  if num_classes is not None:
    checks.integer("--num-classes", num_classes, low=2)
    checks.require(
      table.ndim == 2,
      f"{path} has shape {table.shape}; with --num-classes it must hold "
      "[teachers, queries] class ids",
    )
    checks.ids(str(path), table, num_classes)
    queries = np.arange(table.shape[1])
    flat = (queries * num_classes + table).ravel()
    size = table.shape[1] * num_classes
    table = np.bincount(flat, minlength=size).reshape(-1, num_classes)
  try:
    counts = vote_table(table)
  except checks.ArgumentError as error:
    raise checks.ArgumentError(
      f"{path}: {error} (for [teachers, queries] class ids pass --num-classes)"
    ) from None
  checks.require(len(counts) > 0, f"{path} holds no queries")
  return counts


def _load(path: pathlib.Path) -> Any:
  from jaxfair.data._files import read_arrays

  found = read_arrays(path, remedy="write it with numpy.save")
  checks.require(
    list(found) == [""], f"{path} holds several arrays; save the counts alone with numpy.save"
  )
  return found[""]
