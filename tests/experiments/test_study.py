"""The frame of a study: names of cells, verdicts, claims on a table."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxfair import checks, experiments
from jaxfair.experiments import Study, Table, _config, _registry, bars, lines, mean, points, summary
from jaxfair.experiments._claims import Claim
from jaxfair.experiments._study import cell_name, check_claims, check_columns

settings = st.dictionaries(
  st.text(max_size=10), st.text(max_size=80) | st.integers() | st.floats(), max_size=4
)


@given(settings)
def test_a_cell_name_is_a_short_plain_file_name(cell):
  name = cell_name(cell)
  assert len(name.encode()) < 100
  assert name.isascii()
  assert not set(name) & set('/\\:*?"<>| \n\0')


@given(settings, settings)
def test_different_cells_have_different_names(a, b):
  # repr: 1 and True, 0.0 and -0.0 are different settings.
  if repr(sorted(a.items())) != repr(sorted(b.items())):
    assert cell_name(a) != cell_name(b)


def test_the_order_of_settings_does_not_change_a_name_s_hash():
  a = cell_name({"x": 1, "y": 2})
  b = cell_name({"y": 2, "x": 1})
  assert a.split("-")[-1] == b.split("-")[-1]


def test_claims_without_rows_are_not_run():
  def never(table):
    raise AssertionError("no rows to look at")

  claim = Claim("c", "Something is so", never)
  study = Study("s", "", dict, lambda c: [], lambda c, s, x: Table({}), (claim,))
  [(found_claim, finding)] = check_claims(study, Table({"a": []}))
  assert found_claim is claim
  assert (finding.verdict, finding.why) == ("not run", "no rows")


ROWS = Table({"seed": [0, 1], "kind": ["a", "a"], "accuracy": [0.5, 0.6]})


def study_of(**declared):
  return Study("s", "", dict, lambda c: [], lambda c, s, x: Table({}), **declared)


@pytest.mark.parametrize(
  ("declared", "told"),
  [
    ({"claims": {"c: Good": mean("acuracy") > 0}}, "claim 'c' names column 'acuracy'"),
    ({"claims": {"c: Good": (mean("accuracy") > 0).at(knd="a")}}, "'knd'.*did you mean kind"),
    ({"claims": {"c: Good": (mean("none") > 0).in_each("kind")}}, "'none'"),
    ({"figures": (bars("f: See", "acuracy ~ kind"),)}, "figure 'See' names column 'acuracy'"),
    ({"figures": (lines("f: See", "accuracy ~ seed, col"),)}, "'col'"),
    ({"figures": (points("f: See", "accuracy ~ seed | panel"),)}, "'panel'"),
    ({"figures": (bars("f: See", "accuracy ~ kind", where={"x": 1}),)}, "'x'"),
    ({"summaries": (summary("Means", "accuracy, los ~ kind"),)}, "summary 'Means'.*'los'"),
  ],
)
def test_a_column_that_does_not_exist_is_an_error(declared, told):
  with pytest.raises(checks.ArgumentError, match=f"^study s: .*{told}"):
    check_columns(study_of(**declared), ROWS)


def test_what_was_not_run_may_name_any_column():
  other = {"kind": "b"}
  study = study_of(
    claims={"c: Good": (mean("none") > 0).at(**other), "d: Fine [Fig. 1]": mean("accuracy") > 0},
    figures=(bars("f: See", "none ~ kind", where=other),),
    summaries=(summary("Means", "none ~ kind", other),),
  )
  check_columns(study, ROWS)
  assert [(c.name, c.statement, c.source) for c in study.claims] == [
    ("c", "Good", ""),
    ("d", "Fine", "Fig. 1"),
  ]


def test_figures_are_read_from_formulas_and_titles():
  told = lines("f: See", "y ~ x, color | facet", "How", log="x", zero=True, y_title="own")
  [figure] = study_of(figures=(told,), titles={"x": "axis", "y": "unused"}).figures
  assert figure.mark == "line"
  assert figure.columns == ("x", "y", "color", "facet")
  assert (figure.log_x, figure.log_y, figure.reference) == (True, False, 0.0)
  assert (figure.x_title, figure.y_title, figure.caption) == ("axis", "own", "How")
  for wrong in (("f", "y ~ x"), ("f: See", "y, x"), ("f: See", "y ~ x, a, b")):
    with pytest.raises(ValueError, match="name: title"):
      lines(*wrong)
  with pytest.raises(ValueError, match="name: statement"):
    study_of(claims={"nothing": mean("x") > 0})


@pytest.mark.parametrize("name", _registry.names())
def test_every_study_is_named_as_its_module(name):
  study = _registry.find(name)
  assert study.name == name
  assert study.summary
  for things in (study.claims, study.figures):
    own = [thing.name for thing in things]
    assert len(set(own)) == len(own)


def test_an_unknown_study_is_refused_with_the_names():
  with pytest.raises(_config.ConfigError, match="mean methods"):
    _registry.find("metods", where="a.toml: ")
  with pytest.raises(_config.ConfigError, match=r"^a\.toml: study is missing"):
    _registry.find(None, where="a.toml: ")


def test_a_study_may_name_its_people_itself():
  seen = []
  study = dataclasses.replace(
    _registry.find("methods"),
    people=lambda config: [experiments.People("colored_digits")],
    precheck=lambda config, *people: seen.extend(one.name for one in people),
  )
  assert study.load_people(None) == [""]
  assert seen == ["colored_digits"]


def levels_rows(data, gain, model="plain", value=1.0):
  """Three seeds of a model whose balanced accuracy is that much above a constant's."""
  told = {"balanced_accuracy": 0.5 + gain, "majority_balanced_accuracy": 0.5}
  told |= {"balanced_accuracy_se": 0.01, "accuracy": 0.8, "majority_accuracy": 0.7}
  shared = {"data": data, "model": model, "group": "everyone", "value": value}
  return [{**shared, **told, "seed": seed, "value": value + 0.01 * seed} for seed in range(3)]


def judged(rows, **declared):
  check = mean("value") > 0
  claims = {"all: Above 0": check, "each: Above 0": check.in_each("data")}
  claims |= {"a: Above 0": check.at(data="a"), "b: Above 0": check.at(data="b")}
  study = study_of(claims=claims, plain={"model": "plain"}, **declared)
  return {claim.name: found for claim, found in check_claims(study, Table.from_rows(rows))}


def test_claims_about_models_that_have_not_learnt_are_not_run():
  found = judged(levels_rows("a", 0.019) + levels_rows("b", 0.01, value=-1.0))
  assert {name: one.verdict for name, one in found.items()} == {
    "all": "not run",
    "each": "not run",
    "a": "not run",
    "b": "not run",
  }
  assert found["a"].why.startswith("the model has not learnt: a: the reference model has accuracy")
  assert "balanced accuracy 0.519 (constant 0.500, gain +0.019 [-0.001, +0.039])" in found["a"].why


def test_rows_of_a_data_set_that_was_not_learnt_are_left_out_and_named():
  rows = levels_rows("a", 0.02) + levels_rows("b", 0.01, value=-1.0)
  rows += levels_rows("a", -0.1, model="private") + levels_rows("b", -0.1, model="private")
  found = judged(rows)
  assert found["all"].verdict == found["each"].verdict == found["a"].verdict == "supported"
  assert "(left out: the model has not learnt: b: " in found["all"].statistic
  assert "left out" not in found["a"].statistic
  assert found["b"].verdict == "not run"
  assert found["b"].why.startswith("the model has not learnt: b: ")


def test_the_reference_may_be_other_models_than_the_plain_one():
  rows = levels_rows("a", 0.0) + levels_rows("a", 0.3, model="small")
  assert judged(rows)["a"].verdict == "not run"
  assert judged(rows, reference={"model": "small"})["a"].verdict == "supported"
  bare = [{"data": "a", "model": "plain", "seed": s, "value": 1.0 + s} for s in range(3)]
  assert judged(bare)["a"].verdict == "undecided"  # nothing to judge by
