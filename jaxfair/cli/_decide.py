"""`jaxfair decide`: who gains and who loses if these counts get noise?"""

import pathlib
import shlex
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from jaxfair import checks
from jaxfair.cli import _console, _decide_file, _decide_words

if TYPE_CHECKING:
  from jaxfair.decisions._requirement import NonPrivateRequirement

TITLE_ONE_BUDGET = 6.5e9  # dollars a year


def decide(
  counts: Annotated[pathlib.Path, typer.Option(help="CSV file, one place per line.")],
  rule: Annotated[
    str,
    typer.Option(help="title-one, minority-language, or your own Python function: FILE.py:NAME."),
  ],
  epsilon: Annotated[
    float | None, typer.Option(help="Privacy of one person; smaller protects more.")
  ] = None,
  at_most_loss: Annotated[
    float | None,
    typer.Option(help="Find epsilon: no place may lose more than this (decisions: 0)..."),
  ] = None,
  with_probability: Annotated[
    float | None, typer.Option(help="... with this probability, all places at once.")
  ] = None,
  column: Annotated[
    list[str] | None,
    typer.Option(
      help="A column that the rule reads, in its order; default: the names of its parameters."
    ),
  ] = None,
  public: Annotated[
    list[str] | None, typer.Option(help="A column that gets no noise (for your own rule).")
  ] = None,
  names: Annotated[str, typer.Option(help="Column with the names of the places.")] = "",
  region: Annotated[str, typer.Option(help="Column of regions, for a table by region.")] = "",
  budget: Annotated[
    float | None,
    typer.Option(
      help="Amount to share; your own rule then returns shares of it. Default: 6.5 billion for "
      "title-one; your own rule returns amounts."
    ),
  ] = None,
  unit: Annotated[str, typer.Option(help="Currency, such as EUR.")] = "$",
  remedy: Annotated[
    str, typer.Option(help="How to use noisy counts; all remedies are compared.")
  ] = "non-negative",
  draws: Annotated[int, typer.Option(help="Simulated pairs of releases.")] = 2000,
  out: Annotated[
    pathlib.Path | None, typer.Option(help="Folder of the page; default runs/decide-NAME.")
  ] = None,
) -> None:
  """Show who gains and who loses when decisions use noisy counts, and what would help."""
  wish = (at_most_loss, with_probability)
  checks.require(
    (epsilon is None) == (None not in wish) and wish.count(None) != 1,
    "pass --epsilon, or --at-most-loss together with --with-probability to find it",
  )
  if epsilon is not None:
    checks.positive("epsilon", epsilon)
  checks.integer("draws", draws, low=100)
  if budget is not None:
    checks.positive("budget", budget)
  read = _decide_file.read(
    counts, rule, columns=column or (), public=public or (), names=names, region=region
  )
  checks.one_of("remedy", remedy, read.case.names)
  money = _money(read, rule, budget)

  import jax

  from jaxfair.decisions import _ways

  found: NonPrivateRequirement | None = None
  with _console.progress() as (_, step):
    steps = len(read.case.names) + (epsilon is None)
    if epsilon is None:
      step(0, steps, "finding epsilon")
      assert at_most_loss is not None
      assert with_probability is not None
      found = _find(read, remedy, at_most_loss, with_probability, money, draws)
      epsilon = found.epsilon
    codes = None
    if read.regions is not None:
      codes = np.unique(read.regions, return_inverse=True)[1]
    results: _decide_words.Results = {}
    for name in read.case.names:
      step(len(results) + steps - len(read.case.names), steps, name)
      results[name] = _ways.simulate_way(
        read.case,
        read.case.way(name, epsilon),
        draws=draws,
        key=jax.random.key(0),
        regions=codes if name == remedy else None,
      )
  asked = ["jaxfair", "decide", "--counts", str(counts), "--rule", rule]
  asked += [part for name in column or () for part in ("--column", name)]
  asked += [part for name in public or () for part in ("--public", name)]
  asked += ["--names", names] if names else []
  asked += ["--region", region] if region else []
  asked += ["--budget", f"{budget:.15g}"] if budget is not None else []
  asked += ["--unit", unit] if unit != "$" else []
  told = _decide_words.Told(
    f"{counts.name}: who gains and who loses",
    rule,
    epsilon,
    remedy,
    money,
    unit,
    shlex.join(asked),
    found,
    (at_most_loss or 0.0, with_probability or 0.0),
  )
  folder = out or pathlib.Path("runs") / f"decide-{counts.stem}"
  _decide_words.tell(told, read, results, folder)


def _money(read: _decide_file.OfficeFile, rule: str, budget: float | None) -> float:
  """The amount of money that an outcome of 1 stands for."""
  if read.case.is_rule:
    checks.require(
      budget is None, f"budget is for amounts, but {rule} decides yes or no; leave it out"
    )
    return 1.0
  if rule == _decide_file.SHARING:
    return budget or TITLE_ONE_BUDGET
  total = float(read.case.truth.sum())
  checks.require(
    budget is None or 0 < total <= 1.001,
    f"{rule} returns shares of the budget that add up to {total:.6g}; return shares that add up to "
    "1, or leave --budget out if it returns money",
  )
  return budget or 1.0


def _find(
  read: _decide_file.OfficeFile,
  remedy: str,
  at_most: float,
  probability: float,
  money: float,
  draws: int,
) -> "NonPrivateRequirement":
  import jax

  from jaxfair.decisions import _requirement

  checks.require(
    at_most >= 0 and (at_most < 1 or not read.case.is_rule),
    f"at_most_loss={at_most:g} must be 0 or above, and 0 for decisions (nobody loses a right)",
  )
  checks.require(
    remedy != "piecewise-linear",
    "remedy=piecewise-linear depends on a first release that is simulated once, so its "
    "probability cannot be computed; use another remedy, or --epsilon",
  )
  return _requirement.find_epsilon(
    read.case,
    remedy,
    at_most=at_most / money,
    probability=probability,
    draws=draws,
    key=jax.random.key(2),
  )
