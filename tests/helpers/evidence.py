"""docs/evidence: what runs found, as committed records, and the pages that are made of them.

`python tests/helpers/evidence.py RUN...` records finished run directories (their names are those of
their configs, their parents those of the configs' folders) and writes the pages; without a run it
writes the pages alone. A run is refused if its config in the repository has changed since.
"""

import collections
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import sys
from collections.abc import Iterable, Iterator

from jaxfair import _schema, checks
from jaxfair.experiments import Table, _cells, _config, _folders, _registry, _runs
from jaxfair.experiments._quotes import PAPERS, Quote, quotes_beside, split_places
from jaxfair.report import _static
from jaxfair.studies import NAMES

ROOT = pathlib.Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))  # as a script it finds its neighbors, too

from helpers import evidence_figures  # noqa: E402
from helpers.evidence_figures import cell, link, table  # noqa: E402

EVIDENCE = ROOT / "docs" / "evidence"
TITLES = {
  "decisions": "allotments and rules on private counts (chapter 2)",
  "dp_erm": "private training and its groups (chapter 3)",
  "pate": "PATE and what its noise does to groups (chapter 4 and the PATE paper)",
  "sf_pate": "SF-PATE, fair models with private groups",
  "fairpate": "FairPATE, fair and private at once",
  "pruning": "who pays for pruning (chapter 5)",
  "robustness": "fairness against robustness (chapter 6)",
  "disclosure": "minimal disclosure (chapter 7)",
}
NOT_RUN = evidence_figures.NOT_RUN
VERDICTS = ("supported", "not supported", "undecided", NOT_RUN)
MOST_BYTES, MOST_FIGURES = 40_000, 1
CODE = "study code"  # its name in versions.json


@dataclasses.dataclass(frozen=True)
class Record:
  """What a run found.

  Attributes:
    config: path in the repository.
    study: its study.
    title: its heading.
    size: the size that was run.
    seed: the fixed seed.
    seeds: repetitions in the table.
    rows: rows of results.csv.
    seconds: time of computing.
    cpu_seconds: processor time; 0 if it was not measured.
    digest: SHA-256 of results.csv.
    versions: what computed it.
    levels: how well the reference models have learnt, beside the majority class.
    claims: statements with quotes, numbers, intervals and verdicts.
    figures: file names beside the record.
  """

  config: str
  study: str
  title: str
  size: str
  seed: int
  seeds: int
  rows: int
  seconds: float
  cpu_seconds: float
  digest: str
  versions: dict[str, str]
  levels: tuple[str, ...]
  claims: tuple[_folders.ClaimRecord, ...]
  figures: tuple[str, ...]

  @property
  def told(self) -> list[_folders.ClaimRecord]:
    """The claims that the config is about: it has rows for them."""
    return [one for one in self.claims if not one.why.startswith(("no rows", "the table has no"))]


def record(folder: pathlib.Path) -> pathlib.Path:
  """Writes the record of a finished run; its claims are judged again on its table."""
  size = _config.parse(folder / "config.toml").get("size")
  stem = folder.name.removesuffix(f"-{size}")
  config = ROOT / "configs" / folder.parent.name / f"{stem}.toml"
  now = _registry.load(config, size=size if isinstance(size, str) else None)
  if _config.dump(now.values) != (folder / "config.toml").read_text("utf-8"):
    raise ValueError(f"{folder} was run with another {config.relative_to(ROOT)}; run it again")
  ran = _folders.read_record(folder)
  if not ran.finished:
    raise ValueError(f"{folder} is not finished")
  out = EVIDENCE / "tables" / folder.parent.name
  out.mkdir(parents=True, exist_ok=True)
  study, table = now.study, Table.read(folder / "results.csv")
  found = Record(
    config=str(config.relative_to(ROOT)),
    study=study.name,
    title=now.title,
    size=now.size or "only",
    seed=int(now.seed),
    seeds=len(table.unique("seed")) if "seed" in table else 0,
    rows=len(table),
    seconds=ran.seconds,
    cpu_seconds=ran.cpu_seconds,
    digest=hashlib.sha256((folder / "results.csv").read_bytes()).hexdigest(),
    versions=_folders.read_words(folder / "versions.json"),
    levels=tuple(level.told for level in study.levels(table)),
    claims=_runs.write_claims(study, table, folder),
    figures=tuple(_figures(study, table, out, stem)),
  )
  path = out / f"{stem}.json"
  path.write_text(json.dumps(dataclasses.asdict(found), indent=1) + "\n", encoding="utf-8")
  return path


def _figures(study, table, out, stem) -> Iterator[str]:
  """The study's first figures that have rows, as small SVG files."""
  import matplotlib

  os.environ["SOURCE_DATE_EPOCH"] = "0"
  for old in out.glob(f"{stem}.*.svg"):
    old.unlink()
  drawn = 0
  with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "jaxfair"}):
    for figure in study.column_figures:
      path = out / f"{stem}.{figure.name}.svg"
      if drawn == MOST_FIGURES or not _static.save(figure, table, path):
        continue
      if path.stat().st_size > MOST_BYTES:
        path.unlink()
        continue
      drawn += 1
      yield path.name


@functools.cache
def records() -> dict[str, Record]:
  """The committed records by config."""
  paths = sorted((EVIDENCE / "tables").glob("*/*.json"))
  found = [_schema.read_json(path, Record, remedy="record the run again") for path in paths]
  return {one.config: one for one in found}


def configs(package: str) -> list[str]:
  """The configs of a package, in the order of their numbers."""
  found = (ROOT / "configs" / package).glob("[!_]*.toml")
  return [str(path.relative_to(ROOT)) for path in sorted(found, key=_by_numbers)]


def _by_numbers(path: pathlib.Path) -> list[tuple[bool, int, str]]:
  parts = path.stem.split("_")
  return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def package_page(package: str) -> str:
  """One paper's or chapter's page."""
  text = EVIDENCE / "text" / f"{package}.md"
  lines = [
    f"# Evidence: {TITLES[package]}",
    "",
    "This page is generated from the records in `docs/evidence/tables` by "
    "`python tests/helpers/evidence.py`. Each claim stands beside the sentence that it tests; a "
    "verdict that does not support a paper is a result. [All claims](index.md).",
    "",
    text.read_text(encoding="utf-8").rstrip(),
  ]
  for config in configs(package):
    lines += ["", *_section(config)]
  return "\n".join(lines) + "\n"


def _section(config: str) -> Iterator[str]:
  name, found = pathlib.PurePath(config).stem, records().get(config)
  yield f"## {name}"
  yield ""
  if found is None:
    yield f"No record yet: run `jaxfair run {config}`. ([config](../../{config}))"
    return
  kept = f"tables/{pathlib.PurePath(config).parent.name}/{name}.json"
  yield (
    f"{found.title}. Size `{found.size}`, {found.seeds} seeds, {found.rows:,} rows; "
    f"{_took(found)}; {_code(found)}; [config](../../{config}), [record]({kept})."
  )
  if found.levels:
    yield ""
    yield from (f"- {cell(level)}." for level in found.levels)
  rows = [
    (claim.statement, _quoted(claim.quotes), _found(claim), _verdict(claim)) for claim in found.told
  ]
  if rows:
    yield ""
    heads = ("claim", "the paper's sentence", "found [95% interval]", "verdict")
    yield from table(heads, [tuple(map(cell, row)) for row in rows])
  for figure in found.figures:
    yield ""
    yield f"![{name}, {figure.split('.')[1]}]({pathlib.PurePath(kept).parent}/{figure})"


def _took(found: Record) -> str:
  if found.cpu_seconds:
    return f"{found.cpu_seconds:,.0f} CPU seconds"
  return f"CPU seconds not recorded ({found.seconds:,.0f} seconds by the clock)"


def _code(found: Record) -> str:
  """Whether the study is the one that made the record."""
  before = found.versions.get(CODE)
  if before is None:
    return "code not recorded"
  same = before == _cells.study_digest(_registry.find(found.study).run)
  return "code as it is now" if same else "**the study's code has changed since**"


def index_page() -> str:
  """Every claim of the papers, how many held, and which configs show which figure."""
  rows = [
    (config, claim)
    for package in TITLES
    for config in configs(package)
    if config in records()
    for claim in records()[config].told
  ]
  lines = [
    "# Which claims held",
    "",
    "Every claim of the papers with the sentence that it tests, the verdict, the number with its "
    "interval and the size that was run. The link leads to the claim's section, which leads to "
    "config and record. A claim may be tested by several configs. This page is generated from the "
    "records by `python tests/helpers/evidence.py`.",
    "",
    "```{toctree}",
    ":maxdepth: 1",
    "",
    *sorted(TITLES),
    "```",
    "",
    "## How many held",
    "",
    *(f"- {key.replace('_', '-')}: {told}" for key, told in PAPERS.items()),
    "",
    f"| paper | {' | '.join(VERDICTS)} | configs |",
    "|---|---|---|---|---|---|",
    *_counts(rows),
    "",
    (EVIDENCE / "text" / "index.md").read_text(encoding="utf-8").rstrip(),
    "",
    "## CPU time",
    "",
    _cpu_told(),
    "",
    "## Figures and tables",
    "",
    *evidence_figures.rows(figures()),
    "",
    "## Every claim",
    "",
  ]
  told = []
  for config, claim in rows:
    if claim.source:
      size = f"[{records()[config].size}]({link(config)})"
      cells = (_verdict(claim), claim.statement, _quoted(claim.quotes), _number(claim), size)
      told.append(tuple(map(cell, cells)))
  lines += table(("verdict", "claim", "sentence", "found [95% interval]", "size"), told)
  return "\n".join(lines) + "\n"


def _counts(rows: Iterable[tuple[str, _folders.ClaimRecord]]) -> Iterator[str]:
  counted: dict[str, collections.Counter[str]] = {}
  used: dict[str, set[str]] = {}
  for config, claim in rows:
    for name in {quote.paper for quote in claim.quotes} or {"" if claim.source else "ours"}:
      counted.setdefault(name, collections.Counter())[claim.verdict] += 1
      used.setdefault(name, set()).add(config)
  for name in (*PAPERS, "ours", ""):
    if name in counted:
      told = {"ours": "our own claims", "": "quotes not written down yet"}.get(name)
      numbers = " | ".join(str(counted[name][verdict]) for verdict in VERDICTS)
      yield f"| {told or name.replace('_', '-')} | {numbers} | {len(used[name])} |"


def quotes() -> dict[tuple[str, str], Quote]:
  """All quotes, by package and place."""
  return {
    (name.split(".")[0], place): quote
    for name in NAMES
    for place, quote in (quotes_beside(_registry.find(name).run) or {}).items()
  }


def figures() -> list[evidence_figures.Drawn]:
  """Every figure and table of the papers, in order."""
  tested: dict[tuple[str, str], dict[str, str | None]] = collections.defaultdict(dict)
  for package in TITLES:
    for config in configs(package):
      found = records().get(config)
      for claim in found.told if found else _claims(config):
        judged = found and (evidence_figures.NOT_RUN if claim.verdict == NOT_RUN else found.size)
        for place in split_places(claim.source):
          own = tested[package, place.split(",")[0]]
          if own.get(config) in (None, evidence_figures.NOT_RUN):
            own[config] = judged
  return evidence_figures.drawn(quotes(), tested, ROOT)


def _cpu_told() -> str:
  """The processor time of all records together."""
  known = [one.cpu_seconds for one in records().values() if one.cpu_seconds]
  clock = sum(one.seconds for one in records().values() if not one.cpu_seconds)
  return (
    f"{len(known)} of {len(records())} records know their processor time: {sum(known):,.0f} CPU "
    f"seconds together. The others took {clock:,.0f} seconds by the clock, beside other work."
  )


def _claims(config: str):
  name = _config.read(ROOT / config).get("study")
  return _registry.find(name).claims if name else ()


def _quoted(found: Iterable[Quote]) -> str:
  told = "<br>".join(f'{one.place}, {one.where}: "{one.quote}"' for one in found)
  return told or "(ours)"


def _found(claim: _folders.ClaimRecord) -> str:
  return claim.found(3)


def _number(claim: _folders.ClaimRecord) -> str:
  if claim.value is None:
    return claim.why
  ends = "" if claim.low is None else f" [{claim.low:.3g}, {claim.high:.3g}]"
  return f"{claim.value:.3g}{ends}"


def _verdict(claim: _folders.ClaimRecord) -> str:
  return claim.verdict if claim.verdict == "supported" else f"**{claim.verdict}**"


def pages() -> dict[pathlib.Path, str]:
  """The generated pages: those of packages whose text is written, and the index."""
  written = [name for name in TITLES if (EVIDENCE / "text" / f"{name}.md").exists()]
  made = {EVIDENCE / f"{name}.md": package_page(name) for name in written}
  return made | {EVIDENCE / "index.md": index_page()}


if __name__ == "__main__":
  for told in sys.argv[1:]:
    try:
      print(record(pathlib.Path(told)))
    except (checks.JaxfairError, ValueError, OSError) as error:
      print(f"left out: {error}", file=sys.stderr)
  for page, content in pages().items():
    page.write_text(content, encoding="utf-8")
