"""Checks of the price of fairness, on tables made by hand."""

import numpy as np

from jaxfair.experiments._table import Table
from jaxfair.studies.robustness import price

CLAIMS = {claim.name: claim.check for claim in price.STUDY.claims}


def made(slope, ramp=-0.05, seeds=3, natural_error=0.2):
  """Boundary errors that move by `slope` per strength; less with the ramp."""
  rows = []
  for seed in range(seeds):
    for loss in ("cross_entropy", "ramp"):
      for strength in (0.0, 1.0, 2.0):
        own = {
          "network": "mlp",
          "seed": seed,
          "loss": loss,
          "defence": 0.0,
          "strength": strength,
          "group": "everyone",
          "fair": "yes" if strength else "no",
        }
        natural = natural_error + 0.1 * strength
        rows.append(
          own
          | {
            "attack": "none",
            "natural_error": natural,
            "violation": 0.3 - 0.1 * strength,
            "distance": 0.9 - 0.1 * strength,
          }
        )
        for attack in ("RFGSM l_inf", "PGD l_2"):
          boundary = 0.3 + slope * strength + ramp * (loss == "ramp")
          boundary += 1e-3 * seed
          rows.append(
            own | {"attack": attack, "boundary_error": boundary, "robust_error": natural + boundary}
          )
  names = dict.fromkeys(name for row in rows for name in row)
  columns = {name: [row.get(name) for row in rows] for name in names}
  return price.with_broken_share(Table(columns))


def test_the_broken_share_is_of_the_right_predictions():
  table = made(0.0).where(strength=2.0, attack="PGD l_2", seed=0.0)
  np.testing.assert_allclose(table["broken_share"], [0.3 / 0.6, 0.25 / 0.6])


def test_claims_hold_where_the_thesis_is_right():
  table = made(0.05)
  for name in (
    "violation",
    "natural error",
    "distance",
    "boundary error",
    "robust error",
    "broken share",
    "ramp, boundary",
  ):
    assert CLAIMS[name](table).verdict == "supported", name
  assert CLAIMS["ramp, violation"](table).verdict == "not supported"  # they are alike


def test_claims_fail_where_it_is_not():
  table = made(-0.05, ramp=0.05)
  for name in ("boundary error", "ramp, boundary", "ramp, robust"):
    assert CLAIMS[name](table).verdict == "not supported", name


def test_a_boundary_error_may_fall_while_more_predictions_break():
  table = made(-0.01)
  assert CLAIMS["boundary error"](table).verdict == "not supported"
  assert CLAIMS["broken share"](table).verdict == "supported"


def test_claims_about_the_ramp_are_not_run_without_it():
  table = made(0.05).where(loss="cross_entropy")
  found = CLAIMS["ramp, violation"](table)
  assert found.verdict == "not run"
  assert "ramp" in found.why


def test_a_table_without_attacks_is_not_run():
  assert CLAIMS["boundary error"](Table({"seed": [0.0]})).verdict == "not run"


def test_the_boundaries_of_a_poor_network_are_not_looked_at():
  table = made(0.05, natural_error=0.3)
  for name in ("boundary error", "robust error", "broken share", "ramp, robust"):
    found = CLAIMS[name](table)
    assert found.verdict == "not run"
    assert "natural networks err for 30% (mlp)" in found.why
  assert CLAIMS["violation"](table).verdict == "supported"  # needs no boundary
