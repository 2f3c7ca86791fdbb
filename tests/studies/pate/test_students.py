"""Students side by side: noise alone tells them apart; gaps without bias."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import pate_studies
from jaxfair import models
from jaxfair.experiments import Table
from jaxfair.studies.pate import students as ps
from jaxfair.studies.pate.ensembles import Ensemble, EnsembleConfig
from jaxfair.types import Examples

CONFIG = EnsembleConfig(**{k: v for k, v in pate_studies.SETTINGS.items() if k != "teachers"})


@pytest.fixture(scope="module")
def ensemble():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(140, 3)).astype(np.float32)
  people = Examples(
    jnp.asarray(x), jnp.asarray(x[:, 0] > 0, jnp.int32), jnp.asarray(np.arange(140) % 2, jnp.int32)
  )
  public, test = people.take(slice(0, 40)), people.take(slice(40, None))
  votes = np.asarray(public.y)[:, None] == np.arange(2)
  keys = jax.random.split(jax.random.key(0), 2)
  return Ensemble(public, test, 6 * votes.astype(np.int32), public.y, *keys)


@pytest.fixture(scope="module")
def trained(ensemble):
  """Two penalties; the first draw has no noise, the second flips all."""
  clean = ps.majority_weights(ensemble)
  noisy = jnp.stack([clean, 1 - clean])
  return ps.students(
    CONFIG,
    models.logistic(2),
    ensemble,
    jnp.stack([clean] * 2),
    jnp.stack([noisy] * 2),
    [0.1, 1000.0],
  )


@pytest.mark.slow
def test_students_of_the_same_labels_are_the_same(ensemble, trained):
  errors, learnt = ps.measured(models.logistic(2), trained, ensemble.test, 2)
  deviation = ps.distances(trained)
  assert (deviation[:, 0] == 0).all()
  assert (errors[:, 1] == errors[:, 0]).all()
  assert deviation[0, 1] > 1  # flipped labels: the opposite student
  assert errors[0, 0, -1] < 0.1
  assert errors[0, 2, -1] > 0.9
  assert learnt["balanced_accuracy"][0, 0] > 0.9
  assert learnt["balanced_accuracy"][0, 2] < 0.1


@pytest.mark.slow
def test_the_penalty_holds_students_back(trained):
  size = jnp.linalg.norm(trained["w"][:, 0].reshape(2, -1), axis=1)
  assert size[1] < 0.2 * size[0]


@pytest.mark.slow
def test_rows_are_means_over_draws(ensemble, trained):
  errors, learnt = ps.measured(models.logistic(2), trained, ensemble.test, 2)
  settings, deviation = [{"penalty": 0.1}, {"penalty": 1000.0}], ps.distances(trained)
  rows = Table.concat([*ps.comparison_rows(settings, errors, learnt, deviation, ("a", "b"))])
  assert len(rows) == 2 * 2 * 3
  first = rows.where(penalty=0.1, group="everyone")
  clean, noisy = (first.where(votes=votes) for votes in (ps.CLEAN, ps.NOISY))
  errors = np.asarray(errors, np.float64)[0, :, -1]
  np.testing.assert_allclose(clean["accuracy"], 1 - errors[0])
  np.testing.assert_allclose(noisy["accuracy"], 1 - errors[1:].mean())
  np.testing.assert_allclose(noisy["excess_errors"], errors[1:].mean() - errors[0])
  np.testing.assert_allclose(noisy["deviation"], deviation[0].mean(), rtol=1e-6)
  shares = np.asarray(learnt["balanced_accuracy"], np.float64)[0]
  np.testing.assert_allclose(clean["balanced_accuracy"], shares[0])
  np.testing.assert_allclose(noisy["balanced_accuracy"], shares[1:].mean())
  assert np.isnan(clean["deviation"]).all()
  assert np.isnan(rows.where(group="a")["deviation"]).all()


@pytest.mark.slow
def test_noisy_labels_flip_as_often_as_they_should(ensemble):
  # Six votes apart: Pr[flip] = 1 - Phi(6 / (sqrt(2) 4)) = 0.1444.
  drawn = ps.hard_labels(ensemble, [4.0, 1e-3], 400, key=jax.random.key(1))
  assert drawn.shape == (2, 400, 40, 2)
  flipped = np.asarray(drawn[0] != ps.majority_weights(ensemble))[..., 0]
  deviation = np.sqrt(0.1444 * 0.8556 / flipped.size)
  assert abs(flipped.mean() - 0.1444) < 5 * deviation
  assert (drawn[1] == ps.majority_weights(ensemble)).all()


def test_the_gap_of_groups_that_differ():
  excess = np.array([[0.1, 0.4, 0.2], [0.0, 0.5, 0.3]])
  assert ps.cross_fitted_gap(excess) == pytest.approx((0.5 + 0.3) / 2)
  one_group = np.array([[0.1, np.nan], [0.2, np.nan]])
  assert np.isnan(ps.cross_fitted_gap(one_group))


def test_equal_groups_have_no_gap_on_average():
  # The plain maximum is above 0 by noise alone: 0.36 standard deviations.
  draws = np.random.default_rng(2).normal(size=(2000, 10, 2))
  gaps = [ps.cross_fitted_gap(one) for one in draws]
  plain = np.abs(np.diff(draws.mean(1), axis=1)).mean()
  error = np.std(gaps) / np.sqrt(len(gaps))
  assert abs(np.mean(gaps)) < 5 * error
  assert plain > 20 * error
