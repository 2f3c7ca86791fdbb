"""Single persons along training: figures 3.4, 3.5 and 3.13."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from helpers import dp_erm_runs
from jaxfair.studies.dp_erm import persons
from jaxfair.studies.dp_erm.persons import CORRELATION, PERSON, spearman_without_ties

TINY = ["sets=['bank']", "seeds=3", "shown=300", "training.hidden=4", "training.snapshots=2"]


@pytest.mark.slow
def test_the_rank_correlation_is_scipy_s():
  a, b = jax.random.normal(jax.random.key(0), (2, 50))
  expected = stats.spearmanr(a, b)[0]
  assert float(spearman_without_ties(a, b)) == pytest.approx(expected, abs=1e-5)
  assert float(spearman_without_ties(a, jnp.exp(a))) == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize(
  ("figure", "columns"),
  [("fig_3_4", {"input_gradient": ("input_norm", "gradient_norm")}), ("fig_3_5", persons.PAIRS)],
)
def test_correlations_are_those_of_the_people_shown(tmp_path, figure, columns):
  """All 300 people are shown, so SciPy can recompute the first training's."""
  table, claims = dp_erm_runs.run_untrained(tmp_path / "run", figure, *TINY)
  people = table.where(**PERSON)
  assert len(people) == 3 * 300
  related = table.where(**CORRELATION)
  assert len(related) == 3 * 3
  for name, (a, b) in columns.items():
    for step in (0, 10):
      own, row = people.where(step=step), related.where(step=step, seed=0)
      expected = stats.spearmanr(own[a], own[b])[0]
      assert row[f"{name}_correlation"][0] == pytest.approx(expected, abs=2e-3)  # ties by rounding
      line = np.polyfit(own[a], own[b], 1)[0]
      assert row[f"{name}_slope"][0] == pytest.approx(line, rel=1e-3)
  assert all(claim["verdict"] != "not run" for claim in claims.values())
  assert np.isfinite(people[next(iter(columns.values()))[1]]).all()
