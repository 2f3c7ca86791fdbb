"""`jaxfair account`: what is printed is what the accountant says."""

import re

import numpy as np
import pytest
from scipy import special

from jaxfair import accounting


def number(pattern, text):
  return float(re.search(pattern + r"\s*([0-9.e+-]+)", text).group(1))


def gaussian_delta(sigma, epsilon):
  """Of noise sigma at sensitivity 1: Balle & Wang (2018), written out."""
  upper = special.ndtr(0.5 / sigma - epsilon * sigma)
  return upper - np.exp(epsilon) * special.ndtr(-0.5 / sigma - epsilon * sigma)


@pytest.mark.slow
def test_noise_for_a_budget_keeps_it(jaxfair):
  ended = jaxfair(
    "account", "dp-sgd", "--epsilon", 2, "--delta", 1e-5, "--steps", 100,
    "--batch-size", 50, "--examples", 1000,
  )  # fmt: skip
  assert ended.code == 0, ended.err
  noise = number("noise multiplier:", ended.out)
  spent = accounting.dp_sgd_epsilon(
    noise_multiplier=noise, sampling_rate=0.05, steps=100, delta=1e-5
  )
  assert 1.99 < spent <= 2.0
  assert number("epsilon", ended.out) <= 2.0
  assert "one person added or removed (pld)" in ended.out


def test_the_cost_of_given_noise(jaxfair):
  ended = jaxfair(
    "account", "dp-sgd", "--noise-multiplier", 1.1, "--delta", 1e-5, "--steps",
    100, "--sampling-rate", 0.05, "--accountant", "rdp",
  )  # fmt: skip
  spent = accounting.dp_sgd_epsilon(
    noise_multiplier=1.1, sampling_rate=0.05, steps=100, delta=1e-5,
    accountant="rdp",
  )  # fmt: skip
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
  with accounting.Ledger.create(
    path, data="wards", relation=relation, budget=(3.0, 1e-6)
  ) as book:
    book.charge(accounting.Gaussian(5.0), id="first")
  ended = jaxfair("account", "ledger", path)
  assert ended.code == 0, ended.err
  assert "data: wards" in ended.out
  assert "first: " in ended.out
  spent = accounting.gaussian_epsilon(sigma=5.0, delta=1e-6)
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
      ("dp-sgd", "--steps", 1, "--delta", 1e-5, "--epsilon", 1,
       "--batch-size", 5, "--examples", 4),
      "--batch-size 5 must be from 1 to --examples 4",
    ),
    (
      ("dp-sgd", "--steps", 1, "--delta", 1e-5, "--epsilon", -1,
       "--sampling-rate", 0.1),
      "epsilon=-1.0",
    ),
    (
      ("dp-sgd", "--steps", 1, "--delta", 1e-5, "--epsilon", 1,
       "--sampling-rate", 1.5),
      "sampling_rate=1.5",
    ),
    (("gaussian", "--delta", 2, "--epsilon", 1), "delta=2.0"),
    (("gaussian", "--delta", 1e-5), "--sigma"),
    (("ledger", "none.jsonl"), "none.jsonl"),
  ],
)  # fmt: skip
def test_impossible_questions_are_refused(refused, arguments, told):
  assert told in refused("account", *arguments)
