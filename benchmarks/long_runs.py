"""Long runs: does the time grow with the work, and no faster?

Each job is done at two sizes, ten times apart, in one process; "growth" is the ratio of their
CPU times over ten, so 1 is linear. Ledgers: distinct events charged (each waits for the disk) and
opened again. Accounting: a training of many steps, many queries. Report: rows of a table, drawn.

  python benchmarks/long_runs.py [--only ledger accounting report]
"""

import argparse
import pathlib
import tempfile
import time
from collections.abc import Callable

import numpy as np

from jaxfair import accounting, experiments, report
from jaxfair.accounting import _pate_gnmax, _rdp

FACTOR = 10


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--only", nargs="*", default=list(JOBS), choices=list(JOBS))
  for name in parser.parse_args().only:
    JOBS[name]()


def timed(what: str, size: int, job: Callable[[int], object]) -> None:
  """Prints CPU seconds at a tenth of the size and at the size."""
  seconds = []
  for n in (size // FACTOR, size):
    start = time.process_time()
    told = job(n)
    seconds.append(time.process_time() - start)
  growth = seconds[1] / max(seconds[0], 1e-9) / FACTOR
  print(f"{what:42} {size:>12,}  {seconds[1]:8.2f} CPU s  growth {growth:.2f}  {told or ''}")


def ledger() -> None:
  with tempfile.TemporaryDirectory() as top:
    folder = pathlib.Path(top)

    def charge(n: int) -> None:
      with accounting.Ledger.create(
        folder / f"{n}.jsonl",
        data="people",
        relation=accounting.Relation.ADD_OR_REMOVE_ONE,
        budget=(50.0, 1e-5),
      ) as book:
        for i in range(n):
          book.charge(accounting.Gaussian(1000.0 + i), id=str(i))

    def reopen(n: int) -> None:
      accounting.Ledger.open(folder / f"{n}.jsonl").close()

    timed("ledger: distinct events charged", 100_000, charge)
    timed("ledger: opened again", 100_000, reopen)


def steps() -> None:
  def price(n: int) -> str:
    event = accounting.DpSgd(noise_multiplier=2.0, sampling_rate=1e-5, steps=n)
    relation = accounting.Relation.ADD_OR_REMOVE_ONE
    found = accounting.composed_guarantee([event], delta=1e-6, relation=relation)
    return f"epsilon {found.epsilon:.3f}"

  timed("accounting: steps of DP-SGD", 10**8, price)


def queries() -> None:
  rng = np.random.default_rng(0)
  counts = rng.multinomial(250, [0.8, 0.1, 0.05, 0.05], size=10**6).astype(np.int32)
  orders = np.array(_rdp.DEFAULT_ORDERS[:150:3])

  def price(n: int) -> None:
    _pate_gnmax.gnmax_rdp(counts[:n], sigma=40.0, orders=orders)

  timed("accounting: queries of 250 teachers", 10**6, price)


def rows() -> None:
  with tempfile.TemporaryDirectory() as top:

    def run(n: int) -> str:
      folder = pathlib.Path(top) / str(n)
      made = experiments.plan(STUDY, {"settings": n // 5000})
      experiments.execute(made, folder, say=lambda told: None)
      page = report.write(experiments.read_run(folder, study=STUDY))
      return f"page {page.stat().st_size / 1000:.0f} kB"

    timed("report: rows computed, read and drawn", 10**6, run)


class Config(experiments.Settings):
  """How many settings, each with 1,000 seeds and 5 groups."""

  settings: experiments.Count = 20


def _cell(config: Config, cell: dict[str, int], context: object) -> experiments.Table:
  del config, context
  values = np.random.default_rng(cell["setting"]).normal(size=(1000, 5))
  axes = {"seed": range(1000), "group": list("abcde")}
  return experiments.Table.from_arrays(cell, axes, {"accuracy": values, "loss": values + 1})


STUDY = experiments.Study(
  name="many_rows",
  summary="A table of many rows",
  config=Config,
  cells=lambda config: [{"setting": i} for i in range(config.settings)],
  run=_cell,
  claims={"positive: The mean is positive": experiments.mean("accuracy") > 0},
  figures=(
    experiments.bars("bars: By group", "accuracy ~ group, setting"),
    experiments.lines("lines: By setting", "accuracy ~ setting, group"),
    experiments.points("points: Against the loss", "accuracy ~ loss, group"),
  ),
  summaries=(experiments.summary("Means", "accuracy, loss ~ setting, group"),),
)


def accounting_jobs() -> None:
  steps()
  queries()


JOBS = {"ledger": ledger, "accounting": accounting_jobs, "report": rows}


if __name__ == "__main__":
  main()
