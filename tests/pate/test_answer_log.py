"""A damaged log is one sentence, never a traceback and never an answer."""

import contextlib
import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.json_values import JSON, places
from jaxfair import pate
from jaxfair.accounting import _locked_file
from jaxfair.accounting._ledger_file import replay, sealed_line
from jaxfair.pate import _answer_log, _rules
from jaxfair.pate._answer_log import KIND

RULE = pate.ConfidentGnMax(threshold=60, sigma_threshold=30.0, sigma_answer=12.0)
COUNTS = np.stack([np.arange(30, 60), 100 - np.arange(30, 60)], axis=1)


def begin(folder, rule=RULE):
  return pate.Answerer(folder, rule, budget=(20.0, 1e-5), batch_size=10)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("answers")
  with begin(folder) as answerer:
    answerer.answer(COUNTS, first=0)
  return folder


@pytest.fixture(scope="module")
def raw(folder):
  return (folder / "answers.jsonl").read_bytes()


@pytest.fixture(scope="module")
def good(raw):
  return replay(raw, "x", KIND).records


def sealed(records):
  lines, seal = [], ""
  for record in records:
    line, seal = sealed_line(record, seal)
    lines.append(line + b"\n")
  return b"".join(lines)


def opened(folder, content):
  (folder / "answers.jsonl").write_bytes(content)
  with begin(folder) as answerer:
    return answerer.asked


CHANGES = [
  (0, {"run": 7}),
  (0, {"run": "x"}),
  (0, {"settings": []}),
  (0, {"ledger": None}),
  (0, {"secret": "0"}),
  (0, {"more": 1}),
  (1, {"kind": "hints"}),
  (1, {"kind": []}),
  (1, {"first": 1}),
  (1, {"first": "0"}),
  (1, {"count": 0}),
  (1, {"count": -8}),
  (1, {"count": 10**400}),
  (1, {"count": 10.0}),
  (1, {"passed": "zz" * 2}),
  (1, {"passed": "0 0 "}),
  (1, {"passed": None}),
  (2, {"labels": 3}),
  (2, {"labels": [[0], 1]}),
  (2, {"labels": [10**400]}),
  (2, {"labels": [True]}),
  (2, {"labels": [0] * 99}),
  (2, {"count": 11}),
  (2, {"more": 1}),
]


@pytest.mark.parametrize(("line", "change"), CHANGES)
def test_a_sealed_lie_is_refused(folder, good, line, change):
  records = copy.deepcopy(good)
  records[line].update(change)
  told = f"line {line + 1} .*another folder"
  with pytest.raises(_answer_log.AnswerLogError, match=told):
    opened(folder, sealed(records))


@pytest.mark.parametrize(
  "content",
  [
    b"",
    b"\n",
    b"[]\n",
    b"[" * 100_000 + b"\n",
    b'{"a":' * 100_000 + b"\n",
    b"1" * 5000 + b"\n",
    b'{"format":"jaxfair-answers"}\n',
    b"\xff\xfe\n",
    b"NaN\n",
  ],
)
def test_other_files_are_refused(folder, content):
  with pytest.raises(_answer_log.AnswerLogError, match="answers"):
    opened(folder, content)


def test_other_versions_are_refused(folder, good):
  for change in ({"version": 1}, {"format": "jaxfair-ledger"}):
    with pytest.raises(_answer_log.AnswerLogError, match=r"version|not a log"):
      opened(folder, sealed([good[0] | change]))


def test_soft_answers_are_checked(tmp_path):
  rule = _rules.NoisyVotes(20.0)
  with begin(tmp_path, rule) as answerer:
    answerer.answer(COUNTS[:2], first=0)
  path = tmp_path / "answers.jsonl"
  good = replay(path.read_bytes(), "x", KIND).records
  for labels in ([1, 2], [[1, 2], [3]], [[1, 2]], [[1, 2], [3, 4.0]]):
    path.write_bytes(sealed([good[0], good[1] | {"labels": labels}]))
    with pytest.raises(_answer_log.AnswerLogError, match="labels"):
      begin(tmp_path, rule)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_mutated_logs_are_refused_or_read(folder, good, raw, data):
  records = copy.deepcopy(good)
  if data.draw(st.booleans()):
    for _ in range(data.draw(st.integers(1, 3))):
      spots = [place for place in places(records) if len(place) > 1]
      place = data.draw(st.sampled_from(spots))
      inside = records
      for step in place[:-1]:
        inside = inside[step]
      inside[place[-1]] = data.draw(JSON)
    content = sealed(records)
  else:
    at = data.draw(st.integers(0, len(raw) - 1))
    content = raw[:at] + data.draw(st.binary(max_size=3)) + raw[at + 1 :]
  with contextlib.suppress(_locked_file.LedgerError):
    assert 0 <= opened(folder, content) <= len(COUNTS)
