import jax
import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from helpers import pages
from jaxfair import accounting, checks, data, methods
from jaxfair.sklearn import (
  FairPrivateClassifier,
  PateClassifier,
  PrivacySpentWarning,
  PrivateClassifier,
  PrivateSearchCV,
  RangeScaler,
  _spending,
)
from jaxfair.types import Examples

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(0, 10, (300, 4))
Y = np.where(X[:, 0] + 0.5 * RANDOM.normal(size=300) > X[:, 1], "yes", "no")
GROUP = np.where(X[:, 2] > 5, "b", "a")
BOUNDS = (0.0, 10.0)


@pytest.fixture(autouse=True)
def forget(monkeypatch):
  """Every test has the memory of a new process."""
  monkeypatch.setattr(_spending, "FITS", _spending.Registry())


def population(**more):
  ids = (Y == "yes").astype(np.int32)
  scaled = ((X.astype(np.float32) - 5) / 5).astype(np.float32)
  return methods.Population(
    Examples(scaled, ids, np.zeros(300, np.int32)), ("no", "yes"), ("everyone",), **more
  )


@pytest.mark.slow
def test_fit_is_the_method_and_privacy_its_guarantee(tmp_path):
  own = {"method": "output_perturbation", "bounds": BOUNDS, "random_state": 3}
  model = PrivateClassifier(2.0, 1e-4, settings={"weight_decay": 0.1}, **own).fit(X, Y)
  method = methods.get("output_perturbation")
  people = population()
  plan = method.plan(method.settings(weight_decay=0.1), people.sizes, accounting.Budget(2.0, 1e-4))
  key = jax.random.key(np.random.RandomState(3).randint(np.iinfo(np.int32).max))
  params = method.fit(plan, people, key=key).params
  x = np.asarray(plan.bounded(people).private.x)
  expected = np.argmax(plan.model.apply(params, x), axis=1)
  np.testing.assert_array_equal(model.predict(X), np.array(["no", "yes"])[expected])
  assert model.privacy_.guarantee == plan.guarantee.guarantee
  assert model.privacy_.protected == plan.guarantee.protected
  assert model.privacy_.guarantee.epsilon <= 2.0
  assert model.privacy_.for_release is False
  told = " ".join(model.privacy_.not_protected)
  for public in ("number of people", "range of each feature", "which classes there are"):
    assert public in told


@pytest.mark.slow
def test_with_a_huge_budget_it_is_logistic_regression():
  """Two classes have two vectors of weights of opposite sign: twice scikit-learn's penalty."""
  settings = {"weight_decay": 1e-3}
  own = {"method": "output_perturbation", "settings": settings, "bounds": BOUNDS}
  private = PrivateClassifier(1e8, random_state=0, **own).fit(X, Y)
  x = data.bound_rows((X - 5) / 5, 1.0)
  plain = LogisticRegression(C=2 / (300 * 1e-3)).fit(x, Y)
  assert plain.score(x, Y) > 0.9
  assert abs(private.score(X, Y) - plain.score(x, Y)) < 0.02
  np.testing.assert_allclose(private.predict_proba(X), plain.predict_proba(x), atol=0.05)


@pytest.mark.slow
def test_teachers_learn_from_points_within_the_bounds():
  settings = {"num_teachers": 10, "queries": 200}
  few = PateClassifier(50.0, settings=settings, bounds=BOUNDS).fit(X[:, :2], Y)
  assert few.score(X[:, :2], Y) > 0.8
  assert few.privacy_.for_release
  assert few.privacy_.guarantee.relation is accounting.Relation.REPLACE_ONE


@pytest.mark.slow
def test_randomness_is_the_operating_systems_unless_there_is_a_seed():
  own = {"method": "output_perturbation", "bounds": BOUNDS}
  first = PrivateClassifier(**own).fit(X[:100], Y[:100])
  other = PrivateClassifier(**own).fit(X[100:200], Y[100:200])
  assert first.privacy_.for_release
  assert not np.array_equal(first.predict_proba(X), other.predict_proba(X))


@pytest.mark.filterwarnings("ignore::jaxfair.sklearn.PrivacySpentWarning")
def test_a_pipeline_with_declared_ranges_is_saved_and_loaded(instant, tmp_path):
  whole = make_pipeline(RangeScaler(BOUNDS), PrivateClassifier(random_state=0)).fit(X, Y)
  joblib.dump(whole, tmp_path / "model")
  again = joblib.load(tmp_path / "model")
  np.testing.assert_array_equal(again.predict_proba(X), whole.predict_proba(X))
  assert again[-1].privacy_ == whole[-1].privacy_
  assert "declare ranges" in str(whole[-1].privacy_)
  # The same ranges within the estimator: the same model, and they travel with the release.
  inside = PrivateClassifier(bounds=BOUNDS, random_state=0).fit(X, Y)
  np.testing.assert_allclose(inside.predict_proba(X), whole.predict_proba(X), atol=1e-6)
  inside.released_.save(tmp_path / "release")
  found = methods.load(tmp_path / "release")
  np.testing.assert_array_equal(found.scores(X), inside.predict_proba(X))
  assert found.class_names == ("no", "yes")


def test_a_range_scaler_reads_nothing_but_the_number_of_columns():
  low, high = np.zeros(4), np.array([10.0, 20.0, 10.0, 10.0])
  scaler = RangeScaler((low, high)).fit(X)
  np.testing.assert_allclose(scaler.transform(X), 2 * (X - low) / (high - low) - 1, atol=1e-6)
  np.testing.assert_array_equal(scaler.transform(np.full((1, 4), 99.0)), np.ones((1, 4)))
  np.testing.assert_array_equal(scaler.transform(np.full((1, 4), np.nan)), np.zeros((1, 4)))
  other = RangeScaler((low, high)).fit(X[:1] + 3)
  np.testing.assert_array_equal(other.transform(X), scaler.transform(X))


@pytest.mark.parametrize("bounds", [(1.0, 0.0), (0.0, np.inf), (0.0,), ([0, 0], [1, 1]), 3])
def test_bounds_that_are_no_ranges_are_refused(bounds):
  with pytest.raises(checks.ArgumentError, match=r"^bounds=.*pass \(low, high\)"):
    RangeScaler(bounds).fit(X)


def test_a_second_fit_on_the_same_people_warns_with_the_sum(instant):
  model = PrivateClassifier(epsilon=0.5, delta=1e-4, random_state=0)
  clone(model).fit(X[:100], Y[:100])
  clone(model).fit(X[100:200], Y[100:200])  # other people
  with pytest.warns(PrivacySpentWarning, match=r"epsilon 1\.0, delta 0\.0002 .*alone 0\.5"):
    clone(model).fit(X[:200], Y[:200])
  with pytest.warns(PrivacySpentWarning, match=r"epsilon 1\.5, delta 0\.0003"):
    clone(model).fit(X[50:100], Y[50:100])


def test_the_memory_adds_up_for_each_person():
  """Hand values: three fits, and who was in which."""
  spent = accounting.PrivacyGuarantee(
    0.5, 1e-5, accounting.Relation.REPLACE_ONE, "one person", "none"
  )
  memory, x, y = _spending.Registry(), np.arange(8.0).reshape(4, 2), np.zeros(4)
  assert memory.add(x[:2], y[:2], spent).epsilon == 0.5
  assert memory.add(x[2:], y[2:], spent).epsilon == 0.5
  assert memory.add(x[1:3], y[1:3], spent).epsilon == 1.0
  assert memory.add(x[:1], y[:1], spent).epsilon == 1.0  # never in the third fit
  total = memory.add(x, y, spent)
  assert (total.epsilon, total.delta) == (1.5, pytest.approx(3e-5))
  assert memory.add(x, y + 1, spent).epsilon == 0.5  # another record


def test_fits_of_several_relations_are_added_up_for_the_weakest():
  """Hand values: replacing a person is a removal and an addition, epsilon 2 a and (1 + e^a) d."""
  relations = accounting.Relation

  def spent(relation, epsilon):
    return accounting.PrivacyGuarantee(epsilon, 1e-5, relation, "one person", "none")

  x, y = np.arange(8.0).reshape(4, 2), np.zeros(4)
  removed, replaced = spent(relations.ADD_OR_REMOVE_ONE, 0.5), spent(relations.REPLACE_ONE, 0.25)
  for first, second in ((removed, replaced), (replaced, removed)):
    memory = _spending.Registry()
    assert memory.add(x[:2], y[:2], first).epsilon == first.epsilon
    assert memory.add(x[2:], y[2:], second).relation is second.relation  # other people
    total = memory.add(x[:2], y[:2], second)
    assert total.relation is relations.REPLACE_ONE
    assert total.epsilon == pytest.approx(2 * 0.5 + 0.25)
    assert total.delta == pytest.approx((1 + np.exp(0.5) + 1) * 1e-5)
    total = memory.add(x[:1], y[:1], spent(relations.ATTRIBUTE, 3.0))
    assert (total.relation, total.epsilon) == (relations.ATTRIBUTE, pytest.approx(4.25))


def test_a_fit_of_another_relation_warns_too(instant):
  PrivateClassifier(epsilon=0.5, delta=1e-4, random_state=0).fit(X, Y)
  other = PrivateClassifier(0.5, 1e-4, method="output_perturbation", random_state=0)
  with pytest.warns(PrivacySpentWarning, match=r"epsilon 1\.5, delta 0\.00036.*alone 0\.5"):
    other.fit(X, Y)
  with pytest.warns(PrivacySpentWarning, match=r"epsilon 2\.5, .*for replace-one neighbors"):
    PrivateClassifier(epsilon=0.5, delta=1e-4, random_state=0).fit(X, Y)


@pytest.mark.slow
def test_cross_validation_says_what_it_spends(instant):
  """A person is in the training part of four folds of five."""
  model = PrivateClassifier(epsilon=0.5, delta=1e-4, random_state=0)
  with pytest.warns(PrivacySpentWarning) as told:
    cross_val_score(model, X, Y, cv=5)
  assert "epsilon 2.0, delta 0.0004" in str(told[-1].message)
  with pytest.warns(PrivacySpentWarning, match="PrivateSearchCV"):
    GridSearchCV(model, {"epsilon": [0.5, 1.0]}, cv=2, refit=False).fit(X, Y)


def test_a_ledger_enforces_the_limit(instant, tmp_path, monkeypatch):
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "state"))
  book = accounting.DatasetLedger.of(b"people", name="people")
  book.set_budget((1.5, 1e-3), relation=accounting.Relation.ADD_OR_REMOVE_ONE)
  model = PrivateClassifier(1.0, 1e-4, ledger=book)
  clone(model).fit(X, Y)
  with pytest.warns(PrivacySpentWarning), pytest.raises(accounting.BudgetError):
    clone(model).fit(X, Y)


def test_a_search_is_one_price(instant):
  grid = {"learning_rate": [1.0, 4.0], "steps": np.array([50, 100])}
  search = PrivateSearchCV(grid, 1.0, 1e-4, mean_runs=3.0, random_state=0)
  _, settings = search._chosen()
  assert settings["learning_rate"] == 4.0
  assert settings["rate_factors"] == (0.25, 1.0)
  assert settings["steps"] == 100
  assert settings["step_factors"] == (0.5, 1.0)
  search.fit(X, Y)
  assert search.privacy_.guarantee.epsilon <= 1.0
  assert search.released_.settings["mean_runs"] == 3.0
  for wrong, told in (
    ({"l2_clip": [1.0]}, "only learning_rate and steps can be searched"),
    ({"steps": []}, "is empty"),
    ({"learning_rate": [-1.0]}, "above 0"),
  ):
    with pytest.raises(checks.ArgumentError, match=told):
      PrivateSearchCV(wrong).fit(X, Y)


@pytest.mark.slow
def test_the_price_of_a_search_is_that_of_repeat_and_select():
  search = PrivateSearchCV({"learning_rate": [2.0, 6.0]}, 1.0, 1e-4, mean_runs=2.0)
  method, settings = search._chosen()
  plan = method.plan(
    method.settings(**settings, steps=10), population().sizes, accounting.Budget(1.0, 1e-4)
  )
  assert isinstance(plan.event, accounting.RepeatAndSelect)
  assert [own.learning_rate for own in plan.config.trainings] == pytest.approx([2.0, 6.0])
  assert plan.guarantee.guarantee.epsilon <= 1.0


def seen_by(monkeypatch, name):
  """What the method is given by an estimator."""
  method, seen = methods.METHODS[name], []
  fit = type(method).fit
  monkeypatch.setattr(
    type(method), "fit", lambda *args, **more: seen.append(args[2]) or fit(*args, **more)
  )
  return seen


@pytest.mark.filterwarnings("ignore::jaxfair.sklearn.PrivacySpentWarning")
def test_groups_reach_the_method(instant, monkeypatch):
  seen = seen_by(monkeypatch, "fair_dp_sgd")
  model = FairPrivateClassifier(bounds=BOUNDS, random_state=0)
  clone(model).fit(X[:200], Y[:200], X_public=X[200:], public_sensitive_features=GROUP[200:])
  people = seen.pop()
  assert people.group_names == ("a", "b")
  np.testing.assert_array_equal(people.public.group, GROUP[200:] == "b")
  np.testing.assert_allclose(people.public.x, (X[200:] - 5) / 5, atol=1e-6)
  np.testing.assert_array_equal(people.public.y, -1)  # nobody told their labels
  other = clone(model).set_params(method="private_lagrangian")
  other.fit(X[:200], Y[:200], sensitive_features=GROUP[:200])
  people = seen.pop()
  np.testing.assert_array_equal(people.private.group, GROUP[:200] == "b")
  assert people.public is None
  assert other.groups_ == ("a", "b")


def test_missing_groups_are_told(instant):
  model = FairPrivateClassifier(bounds=BOUNDS, random_state=0)
  with pytest.raises(checks.ArgumentError, match="pass X_public= and public_sensitive_features="):
    clone(model).fit(X, Y, sensitive_features=GROUP)
  with pytest.raises(checks.ArgumentError, match="pass sensitive_features="):
    clone(model).set_params(method="private_lagrangian").fit(X, Y, X_public=X)
  with pytest.raises(ValueError, match="inconsistent numbers"):
    clone(model).set_params(method="private_lagrangian").fit(X, Y, sensitive_features=GROUP[:9])
  with pytest.warns(UserWarning, match="everybody is one group"):
    assert clone(model).fit(X, Y).groups_ == ("everyone",)


@pytest.mark.parametrize(
  ("model", "told"),
  [
    (PrivateClassifier(method="pate"), "not for PrivateClassifier; use dp_sgd or"),
    (PateClassifier(method="fairpate"), "not for PateClassifier; use pate or confident_pate"),
    (PateClassifier(), "X_public is missing"),
    (PrivateClassifier(epsilon=0.0), "epsilon=0.0"),
    (PrivateClassifier(method="dp_sdg"), "did you mean"),
    (PrivateClassifier(classes=["no", "maybe"]), "not among classes"),
    (PrivateClassifier(classes=[0, 1]), "not among classes"),
    (PrivateClassifier(bounds=(0, [1, 2])), "do not fit 4 columns"),
    (PrivateClassifier(settings={"stpes": 5}), r"settings\.stpes: .*steps"),
    (PrivateClassifier(settings={"steps": "5"}), r"settings\.steps='5' must be a whole number"),
    (PrivateClassifier(settings={"network": "mpl"}), "did you mean mlp"),
  ],
)
def test_mistakes_are_told_before_any_work(model, told):
  with pytest.raises(checks.ArgumentError, match=told):
    model.fit(X, Y)


def test_declared_classes_may_be_missing_among_the_people(instant):
  model = PrivateClassifier(classes=["no", "perhaps", "yes"], random_state=0).fit(X, Y)
  assert model.classes_.tolist() == ["no", "perhaps", "yes"]
  assert model.predict_proba(X).shape == (300, 3)
  assert "which was declared" in str(model.privacy_)


@pytest.mark.filterwarnings("ignore::jaxfair.sklearn.PrivacySpentWarning")
def test_the_examples_of_the_page_run(instant, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  pages.run("docs/sklearn.md", blocks=4)
