"""`jaxfair account pate`: three epsilons, marked, and one-line refusals."""

import re

import numpy as np
import pytest

from jaxfair import accounting

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


def test_three_epsilons(jaxfair, votes):
  ended = jaxfair("account", "pate", "votes.npy", *OPTIONS)
  assert ended.code == 0, ended.err
  assert "1000 queries, 250 teachers, 10 classes" in ended.out
  assert "answered: all 1000" in ended.out
  found = epsilons(ended.out)
  assert list(found) == [
    "releasable", "diagnosis, NOT FOR PUBLICATION", "publishable",
  ]  # fmt: skip
  flat, own, sanitised = found.values()
  events = accounting.pate_events(sigma=40.0, num_answered=1000)
  exact = accounting.composed_epsilon(events, delta=1e-6)
  assert exact <= flat <= 1.001 * exact
  diagnosis = accounting.pate_diagnosis(votes, sigma=40.0, delta=1e-6)
  assert own == accounting.round_up(diagnosis.not_for_release)
  assert own < sanitised
  assert "confidence 0.999, order" in ended.out


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


def test_a_threshold(jaxfair, votes, tmp_path):
  test = ("--threshold", 200, "--sigma-threshold", 60)
  whole = jaxfair("account", "pate", "votes.npy", *OPTIONS, *test)
  assert whole.code == 0, whole.err
  assert "expected (diagnosis, NOT FOR PUBLICATION)" in whole.out
  passed = votes.max(axis=1) >= 200
  np.save(tmp_path / "passed.npy", passed)
  some = jaxfair(
    "account", "pate", "votes.npy", *OPTIONS, *test, "--answered", "passed.npy"
  )
  assert f"answered: {passed.sum()} of 1000" in some.out
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
    (
      lambda path: np.save(path, np.array([{}]), allow_pickle=True),
      "not a .npy array",
    ),
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
    ((*OPTIONS, "--answered", "votes.npy"), "--answered goes with"),
    ((*OPTIONS, "--num-classes", 3), "outside 0..2"),
    ((*OPTIONS, "--num-classes", 1), "--num-classes=1 must be at least 2"),
    ((*OPTIONS, "--consensus", 2), "consensus"),
    ((*OPTIONS, "--confidence", 1), "confidence"),
    (
      (*OPTIONS, "--threshold", 300, "--sigma-threshold", 0),
      "above the 250 teachers",
    ),
    (
      (*OPTIONS, "--threshold", 200, "--sigma-threshold", 9,
       "--answered", "votes.npy"),
      "one bool for each",
    ),
  ],
)  # fmt: skip
@pytest.mark.usefixtures("votes")
def test_wrong_options_are_refused(refused, options, told):
  assert told in refused("account", "pate", "votes.npy", *options)
