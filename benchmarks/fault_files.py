"""Files of every kind that jaxfair reads, damaged in random ways."""

import dataclasses
import functools
import json
import pathlib
import random
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxfair import accounting, data, disclosure, fairness, pate
from jaxfair.data._files import read_arrays
from jaxfair.data._sets.images import parse_idx
from jaxfair.disclosure import _network
from jaxfair.disclosure._questionnaire import Questionnaire
from jaxfair.experiments import Table, _folders

RULE = pate.ConfidentGnMax(55, 20.0, 15.0)
COUNTS = np.stack([np.arange(40) % 41 + 30, 70 - np.arange(40) % 41], axis=1)
WEIRD = (
  None,
  True,
  -1,
  0,
  2**70,
  10**400,
  1e308,
  float("nan"),
  float("inf"),
  "",
  "x",
  "x" * 10_000,
  [],
  {},
  [[]],
  {"a": 1},
  "=1",
  "\ud800",
)


def file_case(rng: random.Random, work: pathlib.Path) -> tuple[str, Callable[[], Any]]:
  """A damaged file of some kind, and its reader."""
  kind = rng.choice(["CSV", "npz and npy", "idx", "JSON", "ledgers and logs"])
  samples = _samples(work / "samples")
  name, use = rng.choice(USES[kind])
  folder = work / "damaged"
  shutil.rmtree(folder, ignore_errors=True)
  folder.mkdir()
  path = folder / name
  path.parent.mkdir(exist_ok=True)
  whole = samples / name
  for beside in whole.parent.iterdir() if whole.parent != samples else ():
    shutil.copy(beside, path.parent)
  content = whole.read_bytes()
  if kind == "JSON" and rng.random() < 0.6:
    content = mutate_json(rng, content)
  else:
    for _ in range(rng.randint(1, 3)):
      content = mutate_bytes(rng, content)
  path.write_bytes(content)
  return kind, functools.partial(use, path, samples, random.Random(rng.random()))


def mutate_bytes(rng: random.Random, content: bytes) -> bytes:
  """Flips, cuts, doubles, inserts or swaps something."""
  if not content:
    return rng.randbytes(8)
  start, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
  how = rng.randrange(8)
  if how == 0:
    at = min(start, len(content) - 1)
    flipped = bytes([content[at] ^ 1 << rng.randrange(8)])
    return content[:at] + flipped + content[at + 1 :]
  if how == 1:
    return content[:start]
  if how == 2:
    return content[:start] + content[min(end, start + 20) :]
  if how == 3:
    return content[:end] + content[start:]
  if how == 4:
    return content[:start] + rng.randbytes(rng.choice([1, 9])) + content[start:]
  if how == 5:
    lines = content.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)
  if how == 6:
    old = bytes([rng.choice(content)])
    new = rng.choice([b"\xff", b"\0", b'"', b"9" * 400, b"nan", b"", b"\n", b"-"])
    return content.replace(old, new, rng.choice([1, 3, -1]))
  return rng.choice([b"", b"\n", b"\x1f\x8b\x08", b"PK\x03\x04", b"{" * 99_999])


def mutate_json(rng: random.Random, content: bytes) -> bytes:
  """Replaces, removes or adds one value somewhere."""
  value = json.loads(content)
  holders = [value]
  for one in holders:
    inner = one.values() if isinstance(one, dict) else one
    holders += [v for v in inner if isinstance(v, dict | list)]
  chosen = rng.choice(holders[:60])
  if isinstance(chosen, dict):
    key = rng.choice([*chosen, "other"])
    if rng.random() < 0.3:
      chosen.pop(key, None)
    else:
      chosen[key] = rng.choice(WEIRD)
  elif rng.random() < 0.3 or not chosen:
    chosen.append(rng.choice(WEIRD))
  else:
    chosen[rng.randrange(len(chosen))] = rng.choice(WEIRD)
  return json.dumps(value).encode()


def _own_csv(path: pathlib.Path, samples: pathlib.Path, rng: Any) -> None:
  encoding = rng.choice(["utf-8-sig"] * 4 + ["latin-1", "utf-16", "x", "hex"])
  separator = rng.choice(",,,,;\t")
  found = data.from_csv(path, label="y", group="g", encoding=encoding, separator=separator)
  if found.size > 20:
    import jax

    data.prepare(found, (0.5, 0.5), key=jax.random.key(0))


def _results(path: pathlib.Path, samples: pathlib.Path, rng: Any) -> None:
  Table.from_csv(Table.read(path).to_csv())


def _counts(path: pathlib.Path, samples: pathlib.Path, rng: Any) -> str:
  from fault_inputs import command

  return command("account", "pate", str(path), "--sigma", "40", "--delta", "1e-6")


def _arrays(path: pathlib.Path, samples: pathlib.Path, rng: Any) -> None:
  read_arrays(path)


def _idx(path: pathlib.Path, samples: pathlib.Path, rng: Any) -> None:
  parse_idx(path.read_bytes())


def _record(path: pathlib.Path, samples: pathlib.Path, rng: Any) -> None:
  _folders.read_record(path.parent)
  _folders.read_verdicts(path.parent)
  _folders.read_words(path.parent / _folders.DATA)


def _questions(path: pathlib.Path, samples: pathlib.Path, rng: Any) -> None:
  asked = Questionnaire.read(path)
  asked.words(asked.columns[0])


def _gate(path: pathlib.Path, samples: pathlib.Path, rng: Any) -> None:
  fairness.Abstainer.restore(path)


def _ledger(path: pathlib.Path, samples: pathlib.Path, rng: Any) -> str:
  """Whatever opens tells a beginning of what was charged."""
  from fault_inputs import command

  wrong = command("account", "ledger", str(path))
  if wrong:
    return wrong
  whole = accounting.Ledger.read(samples / path.parent.name / path.name)
  found = accounting.Ledger.read(path)
  same = [e.id for e in found] == [e.id for e in whole][: len(list(found))]
  return "" if same else "a damaged ledger opens"


def _log(path: pathlib.Path, samples: pathlib.Path, rng: Any) -> str:
  """Whatever opens gives the labels that were released."""

  def labels(folder: pathlib.Path) -> Any:
    with pate.Answerer(folder, RULE, seed=5, batch_size=8) as answerer:
      return answerer.answer(COUNTS, first=0).labels

  whole = samples.parent / "whole"
  shutil.rmtree(whole, ignore_errors=True)
  shutil.copytree(samples / "answers", whole)
  same = np.array_equal(labels(path.parent), labels(whole))
  return "" if same else "a damaged log gives other labels"


USES: dict[str, list[tuple[str, Callable[..., Any]]]] = {
  "CSV": [("people.csv", _own_csv), ("results.csv", _results)],
  "npz and npy": [("counts.npy", _counts), ("model.npz", _arrays)],
  "idx": [("images.idx", _idx)],
  "JSON": [
    ("run/run.json", _record),
    ("run/claims.json", _record),
    ("run/data.json", _record),
    ("questionnaire.json", _questions),
    ("gate.json", _gate),
  ],
  "ledgers and logs": [("answers/ledger.jsonl", _ledger), ("answers/answers.jsonl", _log)],
}


@functools.cache
def _samples(folder: pathlib.Path) -> pathlib.Path:
  """One intact file of every kind."""
  rng = np.random.default_rng(0)
  (folder / "run").mkdir(parents=True)
  shutil.copy(folder.parent / "people.csv", folder)
  table = Table({"group": ["=a", "b"] * 9, "value": rng.normal(size=18)})
  (folder / "results.csv").write_text(table.to_csv())
  np.save(folder / "counts.npy", COUNTS)
  np.savez(folder / "model.npz", w=rng.normal(size=(3, 2)), b=np.zeros(2))
  head = b"\0\0\x08\x03" + np.array([4, 5, 5], ">u4").tobytes()
  (folder / "images.idx").write_bytes(head + rng.bytes(100))
  notes = ("one", "two")
  record = _folders.RunRecord("title", "methods", "fixed", notes, True, 3.5)
  claim = _folders.ClaimRecord("a", "b", "c", "supported", "mean", 1.0, 0.5, None, True, "")
  for name, value in (
    ("run", dataclasses.asdict(record)),
    ("claims", [dataclasses.asdict(claim)] * 2),
    ("data", {"people.csv": "0" * 64}),
  ):
    (folder / "run" / f"{name}.json").write_text(json.dumps(value))
  _questionnaire().save(folder / "questionnaire.json")
  gate = fairness.Abstainer(fairness.CounterRule(0.1, 5.0), num_groups=2, num_classes=2)
  gate.save(folder / "gate.json")
  with pate.Answerer(
    folder / "answers", RULE, budget=(6.0, 1e-5), batch_size=8, seed=5
  ) as answerer:
    answerer.answer(COUNTS, first=0)
  return folder


def _questionnaire() -> Questionnaire:
  return Questionnaire(
    title="t",
    class_names=("no", "yes"),
    feature_names=("age", "job=a", "job=b"),
    columns=("age", "job", "job"),
    sensitive=("age", "job"),
    network=_network.as_network({"w": np.ones((3, 2)), "b": np.zeros(2)}),
    gaussian=disclosure.Gaussian(np.zeros(3), np.eye(3)),
    center=np.zeros(3, np.float32),
    factor=np.ones(3, np.float32),
  )
