import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxfair.accounting import Gaussian, Ledger, Relation, ZCdp
from jaxfair.accounting._ledger_file import replay, sealed_line
from jaxfair.accounting._locked_file import LedgerError


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
  """The bytes of a small ledger."""
  path = tmp_path_factory.mktemp("ledger") / "ledger.jsonl"
  with Ledger.create(
    path, data="adult", relation=Relation.ADD_OR_REMOVE_ONE, budget=(10.0, 1e-5)
  ) as ledger:
    ledger.charge(Gaussian(5.0), id="a", note="with a } and a \n in it")
    ledger.charge(ZCdp(0.01), id="b")
    ledger.charge(Gaussian(7.0), id="c")
  return path.read_bytes()


def ids(found):
  return [r["id"] for r in found.records if r.get("kind") == "charge"]


def test_every_cut_leaves_an_intact_beginning_or_is_refused(raw):
  ends = [at + 1 for at, byte in enumerate(raw) if byte == ord("\n")]
  for cut in range(len(raw) + 1):
    if cut < ends[0]:
      with pytest.raises(LedgerError, match="no complete header"):
        replay(raw[:cut], "x")
      continue
    found = replay(raw[:cut], "x")
    # A record that lacks its newline only is complete, so it counts.
    whole = sum(cut >= end - 1 for end in ends[1:])
    assert ids(found) == ["a", "b", "c"][:whole]
    assert found.torn == (0 if cut + 1 in ends else cut - found.size)
    assert found.terminated == (cut + 1 not in ends)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.data())
def test_every_changed_byte_is_detected(raw, data):
  at = data.draw(st.integers(0, len(raw) - 1))
  byte = data.draw(st.integers(0, 255).filter(lambda b: b != raw[at]))
  changed = raw[:at] + bytes([byte]) + raw[at + 1 :]
  with pytest.raises(LedgerError):
    replay(changed, "x")


def test_every_flipped_bit_of_the_last_line_is_detected(raw):
  """Also its newline: or the last charge could pass for unfinished."""
  start = raw[:-1].rindex(b"\n") + 1
  for at in range(start, len(raw)):
    for bit in range(8):
      changed = bytearray(raw)
      changed[at] ^= 1 << bit
      with pytest.raises(LedgerError):
        replay(bytes(changed), "x")


def test_lost_doubled_and_swapped_lines_are_detected(raw):
  header, a, b, c = raw.splitlines(keepends=True)
  for lines in (
    [header, b, c],
    [header, a, c],
    [header, a, a, b, c],
    [header, b, a, c],
    [a, b, c],
    [header, header, a],
    [header, a, b"\n", b, c],
    [header, b"", a.replace(b'"a"', b'"z"'), b, c],
  ):
    with pytest.raises(LedgerError):
      replay(b"".join(lines), "x")


def test_a_line_of_another_ledger_does_not_fit(raw, tmp_path):
  with Ledger.create(tmp_path / "other", data="bank", relation=Relation.ADD_OR_REMOVE_ONE) as other:
    other.charge(Gaussian(5.0), id="a")
  foreign = (tmp_path / "other").read_bytes().splitlines(keepends=True)[1]
  header = raw.splitlines(keepends=True)[0]
  with pytest.raises(LedgerError, match="line 2"):
    replay(header + foreign, "x")


def test_a_line_out_of_sequence_is_refused_even_if_sealed(raw):
  found = replay(raw, "x")
  for sequence in (3, 5, "4", None):
    line, _ = sealed_line({"sequence": sequence}, found.seals[-1])
    with pytest.raises(LedgerError, match="line 5"):
      replay(raw + line + b"\n", "x")
  line, _ = sealed_line({"sequence": 4}, found.seals[-1])
  assert len(replay(raw + line + b"\n", "x").records) == 5


def test_zeros_that_a_power_cut_leaves_are_torn_not_damage(raw):
  found = replay(raw + b"\0" * 40, "x")
  assert ids(found) == ["a", "b", "c"]
  assert found.torn == 40


@pytest.mark.parametrize(
  ("header", "told"),
  [
    ({"format": "something else", "version": 2}, "not a ledger"),
    ({"format": "jaxfair-ledger", "version": 1}, "version 1"),
    ({"format": "jaxfair-ledger"}, "version None"),
  ],
)
def test_other_formats_and_versions_are_refused(header, told):
  line, _ = sealed_line(header, "")
  with pytest.raises(LedgerError, match=told):
    replay(line + b"\n", "x")


@pytest.mark.parametrize(
  "raw_line", [b"", b"hello", b"[]", b"{}", b'{"a":NaN}', b"\xff\xfe", b"1" * 5000, b"[" * 10**5]
)
def test_other_files_are_refused(raw_line):
  with pytest.raises(LedgerError):
    replay(raw_line + b"\n", "x")


def test_lines_can_be_checked_with_common_tools(raw):
  """The seal is SHA-256 of the previous seal and the line without its own."""
  import hashlib

  previous = ""
  for line in raw.decode().splitlines():
    seal = json.loads(line)["sha256"]
    body = line.replace(f',"sha256":"{seal}"', "")
    assert hashlib.sha256((previous + body).encode()).hexdigest() == seal
    previous = seal
