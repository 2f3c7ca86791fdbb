"""The end of each command's `--help`: an example, and the documentation page."""

from typing import NamedTuple

import typer


class Example(NamedTuple):
  """A line that works as it stands, and the page of the documentation about it.

  Attributes:
    line: the command.
    page: of the documentation.
    hosts: the command on the first of two hosts; "" if it runs on one.
  """

  line: str
  page: str
  hosts: str = ""


TRAINED = "runs/train/people-dp_sgd-1"
TRAIN = "jaxfair train people.csv --label hired --group sex --epsilon 1"
EXAMPLES = {
  "train": Example(TRAIN, "docs/train.md", f"{TRAIN} --host 1/2 --coordinator localhost:5000"),
  "predict": Example(
    f"jaxfair predict {TRAINED}/release new.csv --out predictions.csv", "docs/releasing.md"
  ),
  "export": Example(f"jaxfair export {TRAINED}/release --to stablehlo", "docs/releasing.md"),
  "explain": Example(f"jaxfair explain {TRAINED}", "docs/why_groups_pay.md"),
  "report": Example(f"jaxfair report {TRAINED}", "docs/run_directory.md"),
  "release": Example(
    "jaxfair release --method dp_sgd --data people.csv --label hired --group sex "
    "--epsilon 1 --dry-run",
    "docs/releasing.md",
  ),
  "run": Example("jaxfair run configs/robustness/theory.toml --size smoke", "docs/studies.md"),
  "merge": Example("jaxfair merge configs/robustness/theory.toml --size smoke", "docs/studies.md"),
  "audit": Example("jaxfair audit configs/audit/dp_sgd.toml --size smoke", "docs/audit.md"),
  "list": Example("jaxfair list", "docs/methods.md"),
  "frontier": Example(
    "jaxfair frontier runs/fairpate/adult-small --limit epsilon=2", "docs/frontier.md"
  ),
  "ask": Example("jaxfair ask runs/disclosure/figure_7_5_adult-small", "docs/disclosure.md"),
  "decide": Example(
    "jaxfair decide --counts districts.csv --rule title-one --epsilon 0.1", "docs/decisions.md"
  ),
  "data list": Example("jaxfair data list adult", "docs/data.md"),
  "data check": Example("jaxfair data check digits", "docs/data.md"),
  "data fetch": Example("jaxfair data fetch adult", "docs/data.md"),
  "account dp-sgd": Example(
    "jaxfair account dp-sgd --epsilon 1 --delta 1e-6 --steps 500 --batch-size 512 --examples 36631",
    "docs/accounting.md",
  ),
  "account gaussian": Example(
    "jaxfair account gaussian --epsilon 1 --delta 1e-6", "docs/accounting.md"
  ),
  "account pate": Example(
    "jaxfair account pate votes.npy --sigma 40 --delta 1e-6", "docs/pate_accounting.md"
  ),
  "account ledger": Example("jaxfair account ledger", "docs/accounting.md"),
}


def show_in_help(app: typer.Typer, above: str = "") -> None:
  """Puts each command's example below its options; a test requires one of every command."""
  for one in app.registered_commands:
    assert one.callback is not None
    example = EXAMPLES.get(above + (one.name or one.callback.__name__))
    # The lone \b keeps the lines of its paragraph as they are.
    one.epilog = example and "\n".join(["\b", *_lines(example)])
  for group in app.registered_groups:
    assert group.typer_instance is not None
    show_in_help(group.typer_instance, f"{above}{group.name} ")


def _lines(example: Example) -> list[str]:
  more = ["On the first of two hosts:", f"  {example.hosts}"] if example.hosts else []
  return ["Example:", f"  {example.line}", *more, "Documentation:", f"  {example.page}"]
