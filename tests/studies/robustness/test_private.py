"""Private models under attack: what is measured, and what claims compare."""

import numpy as np
import pytest

from jaxfair.experiments._table import Table
from jaxfair.studies.robustness import private


def test_what_breaks_is_a_share_of_the_right_predictions():
  right, left = np.array([1, 1, 0, 1], bool), np.array([1, 0, 0, 0], bool)
  found = private._measured(right, left, np.array([1, 0, 1, 0], bool))
  assert found["accuracy"] == 0.75
  assert found["pruning_cost"] == 0.5
  assert found["broken_share"] == pytest.approx(1 / 3)
  assert np.isnan(private._measured(~right[:2], left[:2], left[:2])["broken_share"])


def test_every_private_method_must_lose_more():
  claims = {claim.name: claim.check for claim in private.STUDY.claims}

  def table(pate):
    shares = {"plain": 0.3, "dp_sgd": 0.5, "pate": pate}
    rows = [(m, s, v + 0.001 * s) for m, v in shares.items() for s in (0, 1)]
    method, seed, share = map(list, zip(*rows, strict=True))
    own = {"method": method, "seed": seed, "broken_share": share}
    return Table(own | {"group": ["everyone"] * len(rows)})

  assert claims["attack"](table(0.6)).verdict == "supported"
  assert claims["attack"](table(0.1)).verdict == "not supported"
