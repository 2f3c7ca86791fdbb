"""`jaxfair account pate`: epsilons, marked, and one-line refusals."""

import re

import numpy as np
import pytest

from jaxfair import accounting
from jaxfair.accounting import _composition, _guarantee

DELTA = ("--delta", "1e-6")
OPTIONS = ("--sigma", "40", *DELTA)


@pytest.fixture
def votes(tmp_path):
  rng = np.random.default_rng(0)
  share = np.maximum(1 - 0.1 * rng.exponential(size=1000), 0.3)
  first = rng.binomial(250, share)
  rest = rng.multinomial(250 - first, np.full(9, 1 / 9))
  counts = np.concatenate([first[:, None], rest], axis=1)
  np.save(tmp_path / "votes.npy", counts)
  return counts


def write_several(path):
  with path.open("wb") as file:
    np.savez(file, a=np.ones(2), b=np.ones(2))


def epsilons(out):
  found = re.findall(r"^for .*?\((.*?)\): epsilon ([\d.]+)", out, re.M)
  return {name: float(figure) for name, figure in found}


PRIVATE = "diagnosis, NOT FOR PUBLICATION"


def test_two_epsilons(jaxfair, votes):
  ended = jaxfair("account", "pate", "votes.npy", *OPTIONS)
  assert ended.code == 0, ended.err
  assert "1000 queries, 250 teachers, 10 classes" in ended.out
  assert "answered: all 1000" in ended.out
  found = epsilons(ended.out)
  assert list(found) == ["releasable", PRIVATE]
  flat, own = found.values()
  events = accounting.pate_events(sigma=40.0, num_queries=1000)
  exact = _composition.composed_epsilon(events, delta=1e-6)
  assert exact <= flat <= 1.001 * exact
  diagnosis = accounting.pate_diagnosis(votes, sigma=40.0, delta=1e-6)
  assert own == _guarantee.round_up(diagnosis.not_for_release)


def test_a_sanitized_figure_is_in_every_epsilon_that_may_be_told(jaxfair, votes):
  del votes
  command = ("account", "pate", "votes.npy", *OPTIONS)
  without = epsilons(jaxfair(*command).out)
  ended = jaxfair(*command, "--sanitize")
  found = epsilons(ended.out)
  assert list(found) == ["releasable", PRIVATE, "publishable"]
  assert "confidence 0.999, order" in ended.out
  assert without["releasable"] < found["releasable"]
  assert found[PRIVATE] < found["publishable"] < found["releasable"]


def test_no_figure_is_drawn_where_none_would_be_lower(jaxfair, tmp_path):
  np.save(tmp_path / "few.npy", np.tile([[140, 10]], (200, 1)))
  command = ("account", "pate", "few.npy", "--sigma", 50, *DELTA)
  ended = jaxfair(*command, "--sanitize")
  assert "no figure for these votes was drawn" in ended.out
  assert epsilons(ended.out) == epsilons(jaxfair(*command).out)


def test_predictions_are_counted(jaxfair, votes, tmp_path):
  ids = [np.repeat(np.arange(10), row) for row in votes]
  np.save(tmp_path / "ids.npy", np.stack(ids, axis=1))
  one = jaxfair("account", "pate", "votes.npy", *OPTIONS)
  other = jaxfair("account", "pate", "ids.npy", "--num-classes", 10, *OPTIONS)
  assert other.code == 0, other.err
  public = ["releasable", "diagnosis, NOT FOR PUBLICATION"]
  for name in public:
    assert epsilons(one.out)[name] == epsilons(other.out)[name]


@pytest.mark.usefixtures("votes")
def test_discrete_noise_costs_a_little_more_at_these_votes(jaxfair):
  test = ("--threshold", 200, "--sigma-threshold", 60)
  command = ("account", "pate", "votes.npy", "--sigma", 10, *DELTA, *test)
  plain = epsilons(jaxfair(*command).out)
  discrete = epsilons(jaxfair(*command, "--discrete").out)
  assert plain["releasable"] == discrete["releasable"]
  private = "diagnosis, NOT FOR PUBLICATION"
  assert plain[private] < discrete[private] < 1.1 * plain[private]


@pytest.mark.usefixtures("votes")
def test_a_threshold(jaxfair):
  test = ("--threshold", 200, "--sigma-threshold", 60)
  whole = jaxfair("account", "pate", "votes.npy", *OPTIONS, *test)
  assert whole.code == 0, whole.err
  assert "expected (diagnosis, NOT FOR PUBLICATION)" in whole.out
  assert "charged: 1000 tests, 1000 answers" in whole.out
  some = jaxfair("account", "pate", "votes.npy", *OPTIONS, *test, "--max-answers", 300)
  assert "charged: 1000 tests, 300 answers" in some.out
  for name in ("releasable", "diagnosis, NOT FOR PUBLICATION"):
    assert epsilons(some.out)[name] < epsilons(whole.out)[name]


@pytest.mark.parametrize(
  ("array", "told"),
  [
    ([[1.5, 2.5]], "not a whole number"),
    ([[3, 1], [2, 1]], "same sum"),
    ([[3, -1]], "negative"),
    ([3, 1], "shape"),
    (np.zeros((0, 3), int), "no queries"),
    (np.array([["a", "b"]]), "count the votes"),
  ],
)
def test_wrong_arrays_are_refused(refused, tmp_path, array, told):
  np.save(tmp_path / "bad.npy", array)
  line = refused("account", "pate", "bad.npy", *OPTIONS)
  assert told in line
  assert "bad.npy" in line


@pytest.mark.parametrize(
  ("write", "told"),
  [
    (lambda path: None, "no such file"),
    (lambda path: path.write_text("1,2\n3,4\n"), "not a .npy array"),
    (lambda path: path.write_bytes(b""), "not a .npy array"),
    (lambda path: path.mkdir(), "not a .npy array"),
    (write_several, "several arrays"),
    (lambda path: np.save(path, np.array([{}]), allow_pickle=True), "not a .npy array"),
  ],
)
def test_wrong_files_are_refused(refused, tmp_path, write, told):
  write(tmp_path / "bad.npy")
  assert told in refused("account", "pate", "bad.npy", *OPTIONS)


@pytest.mark.parametrize(
  ("options", "told"),
  [
    (("--sigma", 0, *DELTA), "sigma=0.0 must be above 0"),
    (("--sigma", 40, "--delta", 2), "delta=2.0"),
    ((*OPTIONS, "--threshold", 200), "--sigma-threshold together"),
    ((*OPTIONS, "--max-answers", 5), "--max-answers goes with"),
    ((*OPTIONS, "--num-classes", 3), "outside 0..2"),
    ((*OPTIONS, "--num-classes", 1), "--num-classes=1 must be at least 2"),
    ((*OPTIONS, "--sanitize", "--consensus", 2), "consensus"),
    ((*OPTIONS, "--sanitize", "--confidence", 1), "confidence"),
    ((*OPTIONS, "--threshold", 300, "--sigma-threshold", 0), "above the 250 teachers"),
    ((*OPTIONS, "--threshold", 200, "--sigma-threshold", 9, "--max-answers", -1), "max_answers=-1"),
  ],
)
@pytest.mark.usefixtures("votes")
def test_wrong_options_are_refused(refused, options, told):
  assert told in refused("account", "pate", "votes.npy", *options)
