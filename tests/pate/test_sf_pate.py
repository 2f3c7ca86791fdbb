"""SF-PATE end to end: fair, private in what it says, open to other trainers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from helpers import pages
from jaxfair import accounting, checks, models, pate, training
from jaxfair.accounting import _composition, _randomized_response
from jaxfair.fairness import constraints
from jaxfair.pate import _answer_log, _attribute, _sf_pate, _sf_release, _sf_votes
from jaxfair.types import Examples, Fit

KEY = jax.random.key(7)
MODEL = models.logistic(2)
LOSS = models.cross_entropy
NOTION = constraints.demographic_parity(2)
FAIR = training.LagrangianConfig(
  constraint=NOTION,
  tolerance=0.02,
  learning_rate=0.05,
  dual_rate=1.0,
  rounds=30,
  steps_per_round=10,
  batch_size=None,
)
PLAIN = training.FitConfig(learning_rate=0.05, steps=100, batch_size=None)
STUDENT = pate.SfPateConfig(
  epsilon=2.0, num_teachers=100, queries=150, teacher=PLAIN, student=FAIR, plain=PLAIN
)
TEACHERS = dataclasses.replace(
  STUDENT, teacher=FAIR, student=dataclasses.replace(PLAIN, proximity=0.01)
)


def make(n=3000, seed=0):
  """Group 1 gets class 1 far less often; one feature nearly tells the group."""
  rng = np.random.default_rng(seed)
  group = rng.integers(0, 2, n).astype(np.int32)
  y = (rng.random(n) < np.where(group == 1, 0.25, 0.7)).astype(np.int32)
  x = rng.normal(size=(n, 4)).astype(np.float32)
  x[:, 0] += 2 * y - 1
  x[:, 1] += 5 * (2 * group - 1) * (rng.random(n) < 0.95)
  return Examples(x, y, group)


PEOPLE = make()
TEST = make(seed=1)


def violation(params, notion=NOTION):
  scores = MODEL.apply(params, TEST.x)
  return float(notion.largest(scores, TEST.y, TEST.group))


@pytest.fixture(scope="module")
def student():
  return pate.fair_student(MODEL, LOSS, PEOPLE, STUDENT, num_groups=2, key=KEY, teacher_model=MODEL)


@pytest.fixture(scope="module")
def unfair():
  return violation(_sf_pate.plain_model(MODEL, LOSS, PEOPLE, PLAIN, key=jax.random.key(0)))


@pytest.mark.slow
def test_the_student_is_fairer_than_a_model_without_groups(student, unfair):
  assert unfair > 0.15
  assert violation(student.params) < 0.6 * unfair


def test_voted_groups_are_mostly_right_and_rows_say_whose(student):
  released = student.released
  truth = PEOPLE.group[released.rows]
  assert np.mean(released.examples.group == truth) > 0.8
  np.testing.assert_array_equal(released.examples.x, PEOPLE.x[released.rows])
  assert len(np.unique(released.rows)) == STUDENT.queries


def test_the_protection_says_what_is_and_is_not_protected(student):
  told = str(student.protection)
  guarantee = student.protection.guarantee
  assert guarantee.relation is accounting.Relation.ATTRIBUTE
  assert guarantee.epsilon <= 2.0
  assert "changed in the private attribute alone" in told
  assert "NOT protected: features and labels" in told
  assert "for study only" in told


@pytest.fixture(scope="module")
def taught():
  return pate.fair_teachers(MODEL, LOSS, PEOPLE, TEACHERS, num_groups=2, num_classes=2, key=KEY)


@pytest.mark.slow
def test_fair_teachers_make_a_fairer_student(taught, unfair):
  assert violation(taught.params) < 0.6 * unfair
  assert (taught.released.examples.group == 0).all()  # nobody's own
  assert any("labels" in what for what in taught.protection.not_protected)


@pytest.mark.slow
def test_without_proximity_labels_are_protected_too():
  config = dataclasses.replace(TEACHERS, student=PLAIN)

  def refuse(parts, x):
    return np.ones((len(parts.y), len(x)), np.int32)

  found = pate.fair_teachers(
    MODEL, LOSS, PEOPLE, config, num_groups=2, num_classes=2, key=KEY, ensemble=refuse
  )
  assert "their labels" in found.protection.protected
  assert not any("labels" in what for what in found.protection.not_protected)


def test_one_attribute_moves_one_vote():
  parts = _attribute.deal(PEOPLE, 100, num_groups=2, key=KEY)
  changed = PEOPLE.group.copy()
  person = 17
  changed[person] = 1 - changed[person]
  other = _attribute.deal(PEOPLE._replace(group=changed), 100, num_groups=2, key=KEY)
  both = [
    _sf_votes.votes(
      MODEL, LOSS, own._replace(y=own.group), PEOPLE.x[:150], PLAIN, num_classes=2, key=KEY
    )
    for own in (parts, other)
  ]
  apart = both[0] - both[1]
  assert np.abs(apart).max() <= 1
  assert (np.linalg.norm(apart, axis=1) <= np.sqrt(2) + 1e-9).all()


def test_theta_star_sees_no_groups():
  blind = [
    _sf_pate.plain_model(MODEL, LOSS, who, PLAIN, key=KEY)
    for who in (PEOPLE, PEOPLE._replace(group=1 - PEOPLE.group))
  ]
  jax.tree.map(np.testing.assert_array_equal, *blind)


def test_any_fair_trainer_and_any_estimator_can_stand_in():
  seen = {}

  def trainer(model, loss, examples, config, *, key, initial, anchor):
    del loss, config, key, anchor
    seen["group"] = examples.group
    return Fit(initial, None)

  ensemble = pate.estimators(lambda: LogisticRegression())
  config = dataclasses.replace(STUDENT, num_teachers=20)
  found = pate.fair_student(
    MODEL, LOSS, PEOPLE, config, num_groups=2, key=KEY, trainer=trainer, ensemble=ensemble
  )
  np.testing.assert_array_equal(seen["group"], found.released.examples.group)
  assert jnp.isfinite(found.params["w"]).all()

  class Fair:
    def fit(self, x, y, *, sensitive_features):
      seen["own"] = sensitive_features
      return self

    def predict(self, x):
      return np.zeros(len(x), int)

  votes = pate.estimators(Fair)(
    Examples(np.zeros((2, 5, 1)), np.zeros((2, 5)), np.ones((2, 5))), np.zeros((3, 1))
  )
  assert votes.shape == (2, 3)
  assert (seen["own"] == 1).all()


def test_a_release_is_charged_in_a_ledger(tmp_path, monkeypatch):
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "state"))
  dataset = accounting.DatasetLedger.of(b"people", name="people")

  def agreed(parts, x):
    return np.zeros((len(parts.y), len(x)), np.int32)

  def release(key=KEY):
    return pate.private_groups(
      None,
      LOSS,
      PEOPLE,
      STUDENT,
      num_groups=2,
      key=key,
      ensemble=agreed,
      folder=tmp_path / "run",
      dataset_ledger=dataset,
    )

  first = release()
  assert first.protection.for_release
  ledger = accounting.Ledger.read(tmp_path / "run" / "ledger.jsonl")
  assert ledger.relation is accounting.Relation.ATTRIBUTE
  assert ledger.guarantee().epsilon <= STUDENT.epsilon
  again = release()  # after a crash: the same answers, no new charge
  np.testing.assert_array_equal(first.examples.group, again.examples.group)
  assert len(list(ledger)) == 1
  (spent,) = dataset.spent(STUDENT.delta)
  assert spent.releases == 1
  assert spent.guarantee.relation is accounting.Relation.ATTRIBUTE
  assert spent.guarantee.epsilon == pytest.approx(STUDENT.epsilon, rel=1e-6)
  # Other questions are not answered by what the folder holds.
  with pytest.raises(_answer_log.AnswerLogError, match="about=groups"):
    _sf_release.private_labels(
      None,
      LOSS,
      PEOPLE,
      STUDENT,
      num_groups=2,
      num_classes=2,
      key=KEY,
      ensemble=agreed,
      folder=tmp_path / "run",
    )
  with pytest.raises(_answer_log.AnswerLogError, match="choose another folder"):
    release(jax.random.key(8))


def test_randomized_groups_cost_the_closed_form(tmp_path, monkeypatch):
  found = pate.randomized_groups(PEOPLE, epsilon=1.5, num_groups=2, key=KEY)
  keep = np.exp(1.5) / (np.exp(1.5) + 1)
  right = np.mean(found.examples.group == PEOPLE.group)
  assert abs(right - keep) < 6 * np.sqrt(keep * (1 - keep) / PEOPLE.size)
  guarantee = found.protection.guarantee
  assert (guarantee.epsilon, guarantee.delta) == (1.5, 0.0)
  assert guarantee.relation is accounting.Relation.ATTRIBUTE
  assert "for study only" in str(found.protection)
  # The operating system's key: new every time, and fit for release.
  released = [pate.randomized_groups(PEOPLE, epsilon=1.5, num_groups=2, key=None) for _ in range(2)]
  assert (released[0].examples.group != released[1].examples.group).any()
  assert "for study only" not in str(released[0].protection)
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "state"))
  book = accounting.DatasetLedger.of(b"people", name="people")
  for key in (KEY, None, None):
    pate.randomized_groups(PEOPLE, epsilon=1.5, num_groups=2, key=key, dataset_ledger=book)
  (spent,) = book.spent(0.0)
  assert spent.releases == 2  # those with a key are studies
  assert spent.guarantee.epsilon == pytest.approx(3.0)
  # A feature that tells the group is not looked for: a refusal would tell.
  told = PEOPLE._replace(x=np.c_[PEOPLE.x, PEOPLE.group].astype(np.float32))
  pate.randomized_groups(told, epsilon=1.5, num_groups=2, key=KEY)
  # Twice the same question: composed in closed form, pure epsilons add up.
  twice = accounting.RandomizedResponse(1.5, 2, count=2)
  total = _composition.composed_epsilon([twice], delta=1e-9, relation=accounting.Relation.ATTRIBUTE)
  wanted = _randomized_response.randomized_response_epsilon(
    epsilon=1.5, categories=2, count=2, delta=1e-9
  )
  assert total == pytest.approx(wanted, rel=1e-6)
  assert 2.99 < total <= 3.0


def test_what_is_missing_is_said():
  with pytest.raises(checks.ArgumentError, match="teacher_model is missing"):
    pate.fair_student(MODEL, LOSS, PEOPLE, STUDENT, num_groups=2, key=KEY)
  with pytest.raises(checks.ArgumentError, match="queries=9000"):
    pate.fair_student(
      MODEL,
      LOSS,
      PEOPLE,
      dataclasses.replace(STUDENT, queries=9000),
      num_groups=2,
      key=KEY,
      teacher_model=MODEL,
    )


@pytest.mark.slow
def test_the_page_s_examples_run_and_print_what_it_says(capsys):
  text = pages.read("docs/sf_pate.md")
  pages.run("docs/sf_pate.md", blocks=2)
  printed = capsys.readouterr().out.strip().splitlines()
  assert "\n".join(printed[:-2]) in text
  for violation in printed[-2:]:
    assert violation in text
  assert f"{_attribute.vote_sigma(epsilon=1, delta=1e-5, queries=200):.1f}" == "80.9"


def test_an_ensemble_that_answers_by_query_is_refused():
  def transposed(parts, x):
    return np.zeros((len(x), len(parts.y)), np.int32)

  with pytest.raises(checks.ArgumentError, match="one row per teacher"):
    pate.private_groups(None, LOSS, PEOPLE, STUDENT, num_groups=2, key=KEY, ensemble=transposed)


@pytest.mark.slow
def test_several_epsilons_are_releases_of_their_own_from_the_same_votes(tmp_path, student):
  config = dataclasses.replace(STUDENT, epsilon=(0.5, 2.0))
  start = _sf_pate.plain_model(MODEL, LOSS, PEOPLE, PLAIN, key=jax.random.key(1))
  found = pate.fair_student(
    MODEL, LOSS, PEOPLE, config, num_groups=2, key=KEY, teacher_model=MODEL, start=start
  )
  groups = found.released.examples.group
  np.testing.assert_array_equal(found.released.rows, student.released.rows)
  right = (groups == PEOPLE.group[found.released.rows]).mean(axis=1)
  assert right[0] < right[1]  # 150 votes of 100 teachers, with noise of 140 and of 40
  # Each student is the trainer's, on its own groups.
  key = jax.random.split(KEY, 3)[2]
  for own, group in zip(map(found.params["w"].__getitem__, range(2)), groups, strict=True):
    people = found.released.examples._replace(group=group)
    alone = training.lagrangian(MODEL, LOSS, people, FAIR, key=key, initial=start, anchor=start)
    np.testing.assert_allclose(own, alone.params["w"], rtol=1e-4, atol=1e-5)
  # Fresh noise each time, so the costs compose; and both are told together.
  sigmas = config.sigmas
  both = accounting.composed_guarantee(
    [accounting.Repeated(pate.GnMax(sigma).answer, 150) for sigma in sigmas],
    delta=config.delta,
    relation=accounting.Relation.ATTRIBUTE,
  )
  assert found.protection.guarantee.epsilon == both.epsilon > 2.0
  with pytest.raises(checks.ArgumentError, match="a release in a folder has one"):
    pate.private_groups(
      MODEL, LOSS, PEOPLE, config, num_groups=2, key=KEY, folder=tmp_path / "release"
    )
