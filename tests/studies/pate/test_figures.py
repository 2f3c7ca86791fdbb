"""The PATE studies end to end, on a few made-up people."""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from helpers import pate_studies
from jaxfair import accounting, checks
from jaxfair.experiments import _registry
from jaxfair.studies.pate import bound, penalty, people, soft
from jaxfair.types import Examples

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  return tmp_path_factory.mktemp("runs")


def claim(study, name):
  [found] = [one for one in _registry.find(study).claims if one.name == name]
  return found


def test_a_large_penalty_moves_the_student_less(folder):
  table = pate_studies.run("pate.penalty", folder, penalties=[0.1, 1000.0], sigma=4.0)
  everyone = table.where(group="everyone", votes="noisy")
  assert len(table) == 2 * 2 * 2 * 3
  weak, strong = (everyone.where(penalty=p) for p in (0.1, 1000.0))
  assert (strong["deviation"] < 0.2 * weak["deviation"]).all()
  deviation = claim("pate.penalty", "deviation, every set").check(table)
  assert deviation.verdict == "supported"
  assert deviation.value == pytest.approx(-1)


def test_more_teachers_are_flipped_less(folder):
  table = pate_studies.run("pate.teachers", folder, teachers=[2, 6], sigma=4.0)
  flips = claim("pate.teachers", "flips, every set").check(table)
  assert flips.verdict == "supported"
  # Of two teachers that agree, 1 - Phi(2 / (sqrt(2) 4)) flip; no fewer can.
  few = table.where(teachers=2, votes="noisy")["flip_probability"]
  assert (few >= stats.norm.sf(2 / (math.sqrt(2) * 4))).all()


def test_correlations_are_those_of_the_people_shown(folder):
  table = pate_studies.run("pate.people", folder, penalties=[1.0], sigma=4.0)
  shown = table.where(row=people.PERSON)
  assert len(shown) == 40
  for first, second in people.PAIRS:
    pair = f"{first}, {second}".replace("_", " ")
    told = table.where(row=people.SPLIT, seed=0, pair=pair)
    if np.ptp(shown[first]) and np.ptp(shown[second]):
      expected = stats.spearmanr(shown[first], shown[second]).statistic
      np.testing.assert_allclose(told["correlation"], expected, atol=1e-12)
  models = table.where(row=people.MODEL)
  assert len(models) == 2
  assert (models["balanced_accuracy"] > 0.6).all()
  # The gradient of softmax regression: sqrt(2) |f - y| sqrt(|x|^2 + 1).
  largest = math.sqrt(2) * np.sqrt(shown["input_norm"] ** 2 + 1)
  assert (shown["gradient_norm"] <= largest * (1 + 1e-5)).all()


def test_inputs_are_shortened_in_their_direction():
  x = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]], np.float32)
  people = Examples(x, np.zeros(3, np.int32), np.zeros(3, np.int32))
  short = np.asarray(penalty.shortened(people, 1.0).x)
  np.testing.assert_allclose(short, [[0.6, 0.8], [0.3, 0.4], [0, 0]], rtol=1e-6)


def test_long_inputs_move_the_student(folder):
  table = pate_studies.run(
    "pate.norms", folder, norms=[0.1, 4.0], penalties=[1.0], sigma=4.0
  ).where(group="everyone", votes="noisy")
  short, long = (table.where(norm=n)["deviation"] for n in (0.1, 4.0))
  assert (short < long).all()


def test_deviations_are_below_their_bounds(folder):
  table = pate_studies.run(
    "pate.bound", folder, penalties=[0.5, 20.0], sigma=4.0, student_steps=100
  )
  for kind in ("bound", "bound in the papers"):
    assert (table.where(kind=kind)["slack"] > 0).all()
  assert (table.where(kind="bound")["second_slack"] > 0).all()
  printed, half = (table.where(kind=k)["deviation"] for k in ("bound in the papers", "bound"))
  np.testing.assert_allclose(printed, 2 * half)
  found = [claim.check(table).value for claim in bound.STUDY.claims]
  slack = table.where(kind="bound")
  least = [rows["slack"].min() for _, rows in slack.split("seed")]
  assert found[1] == pytest.approx(np.mean(least))
  assert found[0] == pytest.approx(found[1] + np.log10(2))


def test_students_of_the_bound_are_optimal(tmp_path, monkeypatch):
  seen = []
  own = bound._deviations

  def watched(config, model, ensemble):
    found = own(config, model, ensemble)
    seen.append((ensemble, found))
    return found

  monkeypatch.setattr(bound, "_deviations", watched)
  drawn = []
  labels = bound.hard_labels
  monkeypatch.setattr(
    bound, "hard_labels", lambda *args, **kw: drawn.append(labels(*args, **kw)) or drawn[-1]
  )
  pate_studies.run("pate.bound", tmp_path, penalties=[0.5], sigma=4.0, student_steps=100, splits=1)
  ((ensemble, found),) = seen
  x = np.c_[np.asarray(ensemble.public.x, float), np.ones(40)]

  def optimum(weights):
    def objective(flat):
      theta = flat.reshape(4, 2)
      losses = special.logsumexp(x @ theta, axis=1)
      losses = losses - (weights * (x @ theta)).sum(1)
      return losses.mean() + 0.5 * (flat**2).sum()

    return optimize.minimize(objective, np.zeros(8), tol=1e-12).x

  plain = optimum(np.eye(2)[np.asarray(ensemble.majority)])
  noisy = [optimum(np.asarray(one, float)) for one in drawn[0][0]]
  expected = [np.linalg.norm(one - plain) for one in noisy]
  np.testing.assert_allclose(found[0], expected, rtol=1e-3)


def test_a_student_that_is_not_solved_is_refused(tmp_path):
  with pytest.raises(checks.JaxfairError, match="student_steps=1 leave"):
    pate_studies.run("pate.bound", tmp_path, penalties=[0.5], student_steps=1, splits=1)


def test_noise_pays_for_all_labels_and_no_more(folder):
  config = pate_studies.plan("pate.soft", folder, delta=1e-5).settings
  for epsilon, sigma in zip(config.epsilons, config.sigmas, strict=True):
    spent = accounting.zcdp_epsilon(rho=40 / sigma**2, delta=1e-5)
    assert 0.999 * epsilon < spent <= epsilon


def test_kinds_of_labels_are_compared(folder):
  table = pate_studies.run("pate.soft", folder, epsilons=[1.0, 1000.0], penalties=[1.0])
  everyone = table.where(group="everyone", votes="noisy")
  assert len(everyone) == 3 * 2 * 2
  for kind in (soft.HARD, soft.SOFT, soft.PROJECTED):
    noisy, clear = (everyone.where(labels=kind, epsilon=e)["deviation"] for e in (1, 1000))
    assert (clear < noisy).all()
  assert np.isnan(everyone["group_excess"]).all()


def test_refusals_are_those_of_the_test(folder):
  table = pate_studies.run("pate.refusals", folder, thresholds=[0.0, 1.0], sigma_threshold=0.01)
  everyone = table.where(group="everyone")
  # Without noise nobody is refused at 0; at 1 those on whom all six teachers agree pass half of
  # the time, since their count is the threshold itself, and nobody else does.
  assert (everyone.where(threshold=0.0)["coverage"] == 1).all()
  assert (everyone.where(threshold=1.0)["coverage"] <= 0.5).all()
  at_all = everyone.where(threshold=0.0)
  np.testing.assert_allclose(at_all["answered_accuracy"], at_all["accuracy"])
  groups = table.where(threshold=1.0, group=("a", "b"))
  assert len(groups) == 2 * 2
  # Group b is harder to tell apart, so teachers agree on it less often.
  a, b = (groups.where(group=name)["coverage"].mean() for name in "ab")
  assert b < a
