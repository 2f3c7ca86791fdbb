"""`jaxfair account`: what is printed is what the accountant says."""

import re

import numpy as np
import pytest
from scipy import special

from jaxfair import accounting, data
from jaxfair.accounting import _composition, _dp_sgd, _gaussian
from jaxfair.data import _identity


def number(pattern, text):
  return float(re.search(pattern + r"\s*([0-9.e+-]+)", text).group(1))


def gaussian_delta(sigma, epsilon):
  """Of noise sigma at sensitivity 1: Balle & Wang (2018), written out."""
  upper = special.ndtr(0.5 / sigma - epsilon * sigma)
  return upper - np.exp(epsilon) * special.ndtr(-0.5 / sigma - epsilon * sigma)


@pytest.mark.slow
def test_noise_for_a_budget_keeps_it(jaxfair):
  ended = jaxfair(
    "account",
    "dp-sgd",
    "--epsilon",
    2,
    "--delta",
    1e-5,
    "--steps",
    100,
    "--batch-size",
    50,
    "--examples",
    1000,
  )
  assert ended.code == 0, ended.err
  noise = number("noise multiplier:", ended.out)
  spent = _dp_sgd.dp_sgd_epsilon(noise_multiplier=noise, sampling_rate=0.05, steps=100, delta=1e-5)
  assert 1.99 < spent <= 2.0
  assert number("epsilon", ended.out) <= 2.0
  assert "one person added or removed (pld)" in ended.out


def test_bands_that_draw_everybody_cost_one_gaussian(jaxfair):
  """Twenty parts, each drawn whole in 5 of 100 steps: noise 4 five times over."""
  given = "--noise-multiplier 4 --delta 1e-5 --steps 100 --sampling-rate 0.05 --bands 20"
  ended = jaxfair("account", "dp-sgd", *given.split())
  assert ended.code == 0, ended.err
  epsilon = number("epsilon", ended.out)
  assert (
    gaussian_delta(4 / np.sqrt(5), epsilon) <= 1e-5 < gaussian_delta(4 / np.sqrt(5), 0.99 * epsilon)
  )
  ended = jaxfair("account", "dp-sgd", *given.replace("20", "21").split())
  assert ended.code == 2
  assert "use at most 20 bands" in ended.err


def test_the_cost_of_given_noise(jaxfair):
  ended = jaxfair(
    "account",
    "dp-sgd",
    "--noise-multiplier",
    1.1,
    "--delta",
    1e-5,
    "--steps",
    100,
    "--sampling-rate",
    0.05,
    "--accountant",
    "rdp",
  )
  spent = _dp_sgd.dp_sgd_epsilon(
    noise_multiplier=1.1, sampling_rate=0.05, steps=100, delta=1e-5, accountant="rdp"
  )
  printed = number("epsilon", ended.out)
  assert spent <= printed <= spent + 0.01
  assert "noise multiplier" not in ended.out


def test_gaussian_noise(jaxfair):
  ended = jaxfair("account", "gaussian", "--epsilon", 1, "--delta", 1e-5)
  sigma = number("sigma:", ended.out)
  assert gaussian_delta(sigma, 1.0) == pytest.approx(1e-5, rel=1e-6)
  back = jaxfair("account", "gaussian", "--sigma", sigma, "--delta", 1e-5)
  assert number("epsilon", back.out) == pytest.approx(1.0, abs=0.01)


def test_sensitivity_scales_the_noise(jaxfair):
  base = ("account", "gaussian", "--epsilon", 1, "--delta", 1e-5)
  once = number("sigma:", jaxfair(*base).out)
  twice = number("sigma:", jaxfair(*base, "--sensitivity", 2).out)
  assert twice == pytest.approx(2 * once, rel=1e-9)


def test_a_ledger_is_read_aloud(jaxfair, tmp_path):
  path = tmp_path / "ledger.jsonl"
  relation = accounting.Relation.ADD_OR_REMOVE_ONE
  with accounting.Ledger.create(path, data="wards", relation=relation, budget=(3.0, 1e-6)) as book:
    book.charge(accounting.Gaussian(5.0), id="first")
  ended = jaxfair("account", "ledger", path)
  assert ended.code == 0, ended.err
  assert "data: wards" in ended.out
  assert "first: " in ended.out
  spent = _gaussian.gaussian_epsilon(sigma=5.0, delta=1e-6)
  assert number("spent: epsilon", ended.out) == pytest.approx(spent, rel=0.02)
  assert "budget: epsilon 3, delta 1e-06" in ended.out


@pytest.mark.parametrize(
  ("arguments", "told"),
  [
    (("dp-sgd", "--steps", 1, "--delta", 1e-5), "--noise-multiplier"),
    (
      ("dp-sgd", "--steps", 1, "--delta", 1e-5, "--epsilon", 1),
      "--sampling-rate, or both --batch-size and --examples",
    ),
    (
      ("dp-sgd", "--steps", 1, "--delta", 1e-5, "--epsilon", 1, "--batch-size", 5, "--examples", 4),
      "--batch-size 5 must be from 1 to --examples 4",
    ),
    (
      ("dp-sgd", "--steps", 1, "--delta", 1e-5, "--epsilon", -1, "--sampling-rate", 0.1),
      "epsilon=-1.0",
    ),
    (
      ("dp-sgd", "--steps", 1, "--delta", 1e-5, "--epsilon", 1, "--sampling-rate", 1.5),
      "sampling_rate=1.5",
    ),
    (("gaussian", "--delta", 2, "--epsilon", 1), "delta=2.0"),
    (("gaussian", "--delta", 1e-5), "--sigma"),
    (("ledger", "none.jsonl"), "none.jsonl"),
  ],
)
def test_impossible_questions_are_refused(refused, arguments, told):
  assert told in refused("account", *arguments)


@pytest.fixture
def own_state(tmp_path, monkeypatch):
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "state"))
  path = tmp_path / "people.csv"
  path.write_text("age,sex\n31,f\n44,m\n")
  return path


def test_ledgers_of_data_sets_are_listed_and_found_by_their_data(jaxfair, own_state):
  assert "no data set has any releases" in jaxfair("account", "ledger").out
  books = [
    accounting.DatasetLedger.of(data.csv_identity(own_state), name="people"),
    accounting.DatasetLedger.of(_identity.named_identity("adult"), name="adult"),
  ]
  for book in books:
    for id in ("a: ages", "b: ages"):
      book.charge(accounting.Gaussian(5.0), id=id, relation=accounting.Relation.REPLACE_ONE)
  every = jaxfair("account", "ledger", "--delta", 1e-5).out
  assert [line for line in every.splitlines() if line[:5] == "data:"] == [
    "data: adult",
    "data: people",
  ]
  assert every.count("2 releases") == 2
  spent = _composition.composed_epsilon(
    [accounting.Gaussian(5.0)] * 2, delta=1e-5, relation=accounting.Relation.REPLACE_ONE
  )
  assert number("epsilon", every) == pytest.approx(spent, abs=1e-3)
  for of in (own_state, "adult"):
    one = jaxfair("account", "ledger", of, "--delta", 1e-5).out
    assert "b: ages: Gaussian" in one
    assert one.count("data:") == 1


def test_a_data_set_gets_a_budget(jaxfair, own_state):
  told = jaxfair("account", "ledger", own_state, "--budget", "3,1e-5")
  assert told.code == 0, told.err
  assert "budget: epsilon 3, delta 1e-05" in told.out
  for wrong in ("3", "3,1e-5,2", "much,1e-5", "-1,1e-5"):
    refused = jaxfair("account", "ledger", own_state, f"--budget={wrong}")
    assert refused.code == 2
  assert jaxfair("account", "ledger", "--budget", "3,1e-5").code == 2
  assert jaxfair("account", "ledger", "nowhere.csv").code == 2
