"""`jaxfair audit`: an audit runs, another study is refused."""

import pytest

AUDIT = """
study = "audit"
epsilons = [8.0]
steps = 5
people = 100
canaries = 100
batch_size = 20
seeds = 2
runs = 500
"""


@pytest.mark.slow
def test_an_audit_prints_its_verdicts_and_writes_a_page_and_run_takes_it_too(jaxfair, tmp_path):
  (tmp_path / "a.toml").write_text(AUDIT)
  ended = jaxfair("audit", "a.toml", "--set", "seed=3", "--out", "r")
  assert ended.code == 0, ended.err
  assert "supported: The implementation is not caught violating" in ended.out
  assert (tmp_path / "r" / "report.html").exists()
  assert "seed = 3" in (tmp_path / "r" / "config.toml").read_text()
  again = jaxfair("run", "a.toml", "--set", "seed=3", "--out", "r")  # nothing is redone
  assert (again.code, again.out) == (0, ended.out)
  assert "2 of 2 cells were computed" in again.err


def test_another_study_is_refused(refused, tmp_path):
  (tmp_path / "a.toml").write_text('study = "methods"\n')
  told = refused("audit", "a.toml")
  assert "a.toml: study='methods' is not an audit" in told
  assert "jaxfair run" in told


def test_a_missing_file_is_refused(refused):
  assert "b.toml: no such config file" in refused("audit", "b.toml")
