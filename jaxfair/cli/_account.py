"""`jaxfair account`: what a mechanism costs, or how much noise it needs."""

from typing import Annotated, Literal

import typer

from jaxfair.checks import ArgumentError, require
from jaxfair.cli import _account_ledger, _account_pate

app = typer.Typer(
  no_args_is_help=True, help="Privacy arithmetic: DP-SGD, Gaussian noise, PATE votes, a ledger."
)
app.command()(_account_pate.pate)
app.command()(_account_ledger.ledger)
Delta = Annotated[float, typer.Option(help="The delta of the guarantee.")]
Epsilon = Annotated[float | None, typer.Option(help="Find the noise for this epsilon.")]
Accountant = Annotated[
  Literal["pld", "rdp"], typer.Option(help="pld (nearly exact) or rdp (faster, larger).")
]


@app.command(name="dp-sgd")
def dp_sgd(
  steps: Annotated[int, typer.Option(help="Number of steps.")],
  delta: Delta,
  noise_multiplier: Annotated[float | None, typer.Option(help="Noise over the clip bound.")] = None,
  epsilon: Epsilon = None,
  sampling_rate: Annotated[
    float | None, typer.Option(help="Probability that a person is in a batch.")
  ] = None,
  batch_size: Annotated[
    int | None, typer.Option(help="Expected batch size; with --examples.")
  ] = None,
  examples: Annotated[int | None, typer.Option(help="Number of people; with --batch-size.")] = None,
  bands: Annotated[int | None, typer.Option(help="Number of steps that share their noise.")] = None,
  accountant: Accountant = "pld",
) -> None:
  """Compute what DP-SGD with Poisson batches costs, or the noise it needs."""
  from jaxfair import accounting

  _one_of("--noise-multiplier", noise_multiplier, "--epsilon", epsilon)
  rate = _rate(sampling_rate, batch_size, examples)
  if epsilon is not None:
    noise_multiplier = accounting.calibrate_dp_sgd(
      epsilon=epsilon,
      delta=delta,
      sampling_rate=rate,
      steps=steps,
      accountant=accountant,
      bands=bands,
    )
    typer.echo(f"noise multiplier: {noise_multiplier}")
  assert noise_multiplier is not None
  event = accounting.DpSgd(noise_multiplier, rate, steps, bands=bands)
  found = accounting.composed_guarantee([event], delta=delta, accountant=accountant)
  typer.echo(f"guarantee: {found}")


@app.command()
def gaussian(
  delta: Delta,
  sigma: Annotated[float | None, typer.Option(help="Standard deviation of the noise.")] = None,
  epsilon: Epsilon = None,
  sensitivity: Annotated[float, typer.Option(help="L2 distance between neighbors.")] = 1.0,
) -> None:
  """Compute what one release with Gaussian noise costs, or the noise it needs."""
  from jaxfair import accounting
  from jaxfair.accounting import _gaussian, _guarantee

  _one_of("--sigma", sigma, "--epsilon", epsilon)
  if epsilon is not None:
    sigma = accounting.gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    typer.echo(f"sigma: {sigma}")
  assert sigma is not None
  found = _gaussian.gaussian_epsilon(sigma=sigma, delta=delta, sensitivity=sensitivity)
  typer.echo(
    f"guarantee: epsilon {_guarantee.round_up(found)}, delta {delta:g} for "
    f"neighbors at most {sensitivity:g} apart in L2 (exact)"
  )


def _one_of(first: str, one: float | None, second: str, other: float | None) -> None:
  require(
    (one is None) != (other is None),
    f"pass {first} to compute the cost, or {second} to compute the noise",
  )


def _rate(rate: float | None, batch_size: int | None, examples: int | None) -> float:
  if rate is not None and batch_size is None and examples is None:
    return rate
  if rate is None and batch_size is not None and examples is not None:
    require(
      0 < batch_size <= examples,
      f"--batch-size {batch_size} must be from 1 to --examples {examples}",
    )
    return batch_size / examples
  raise ArgumentError("pass --sampling-rate, or both --batch-size and --examples")
