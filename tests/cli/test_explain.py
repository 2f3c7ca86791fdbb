"""`jaxfair explain`: one answer for every method, and one line for what is no such run."""

import re

import numpy as np
import pytest

from jaxfair import report
from jaxfair.experiments import Table, _reading, _registry, _runs
from jaxfair.experiments import _config as configs
from jaxfair.studies import advice, explanation

SEEDS = 6


def rows(method, epsilon, *, women, men, balanced=0.75, **columns):
  """Costs of accuracy for two groups, six seeds; columns are (women, men, everyone)."""
  found = []
  for seed in range(SEEDS):
    for i, (group, cost) in enumerate((("women", women), ("men", men), ("everyone", None))):
      jitter = 0.001 * (seed - 2.5)
      row = {
        "method": method,
        "epsilon": epsilon,
        "seed": seed,
        "group": group,
        "count": 100 * (i + 1),
        "accuracy": 0.8,
        "accuracy_cost": (women + men) / 2 if cost is None else cost + jitter,
        "loss_cost": 0.1 * (i + 1),
        **{name: values[i] for name, values in columns.items()},
      }
      if group == "everyone":
        row |= {
          "balanced_accuracy": balanced + jitter,
          "majority_accuracy": 0.7,
          "majority_balanced_accuracy": 0.5,
          "balanced_accuracy_se": 0.01,
          "one_class_share": 0.8,
        }
      found.append(row)
  return found


@pytest.fixture
def run(tmp_path):
  """Writes a finished quickstart with these rows."""

  def write(*parts, **values):
    folder = tmp_path / "run"
    folder.mkdir()
    made = _runs.plan(_registry.find("methods"), {"study": "methods", **values})
    (folder / "config.toml").write_text(configs.dump(made.values))
    table = Table.from_rows([row for part in parts for row in part])
    (folder / "results.csv").write_text(table.to_csv())
    return folder

  return write


CLIPPED = {"clipped_rate": (0.4, 0.1, 0.2), "closeness": (0.2, 0.2, 0.2)}
FLIPPED = {"flip_rate": (0.3, 0.1, 0.15), "refused_rate": (0.0, 0.0, 0.0)}


def test_it_says_who_pays_how_much_why_and_what_to_try(jaxfair, run):
  folder = run(
    rows("dp_sgd", 1.0, women=0.04, men=0.01, **CLIPPED),
    rows("pate", 1.0, women=0.02, men=0.015, **FLIPPED),
  )
  ended = jaxfair("explain", folder)
  assert ended.code == 0
  assert (
    "Who pays: women (n = 100). DP-SGD, epsilon 1 takes 4 points of accuracy [3.8, 4.2] from it, "
    "and 1 from men (n = 200)." in ended.out
  )
  assert "By loss, men pays most" in ended.out  # another measure names another group: said
  assert "share of its gradients that are clipped is 0.4, beside 0.2 of everybody" in ended.out
  assert "--set settings.dp_sgd.l2_clip=2" in ended.out
  assert "costs no more epsilon" in ended.out
  assert "not for release" in ended.out
  # Reasons are those of the method.
  (line,) = [line for line in ended.out.splitlines() if line.startswith("PATE, epsilon 1")]
  assert "share of its labels that noise changes: 2.00 times everybody's" in line


def test_the_command_to_try_names_what_it_needs_and_what_it_charges():
  why = advice.advise("methods", {}, {"method": "dp_sgd"}, (), "jaxfair run c.toml")
  assert "--set public_csv=PUBLIC.csv --out" in why
  assert "charged in addition" not in why
  values = {"public_fraction": 0.1, "release_epsilon": 1.0}
  why = advice.advise("methods", values, {"method": "dp_sgd"}, (), "jaxfair run c.toml")
  assert "PUBLIC.csv" not in why
  assert "also releases another model, which is charged in addition." in why


def test_the_page_names_the_same_group_in_the_same_words(run):
  folder = run(rows("dp_sgd", 1.0, women=0.04, men=0.01, **CLIPPED))
  page = report.write(_reading.read_run(folder)).read_text()
  found = explanation.explain_run(folder)
  first, why, tip = explanation.sentences(explanation.hardest(found), found)
  assert first in page
  assert why in page
  assert tip.split("`")[0] in page


@pytest.mark.parametrize(
  ("method", "columns", "told"),
  [
    ("dp_sgd", {"closeness": (0.4, 0.1, 0.2)}, "'methods=[\"fair_dp_sgd\"]'"),
    ("dp_sgd", CLIPPED, "settings.dp_sgd.l2_clip=2"),
    ("fair_dp_sgd", CLIPPED, "settings.fair_dp_sgd.l2_clip=2"),
    ("pate", FLIPPED, "settings.pate.queries="),
    ("fairpate", {"refused_rate": (0.5, 0.1, 0.2)}, "settings.fairpate.max_gap=0.2"),
    ("sf_pate_t", {"closeness": (0.4, 0.1, 0.2)}, "settings.sf_pate_t.tolerance="),
    ("output_perturbation", {"input_norm": (2.0, 1.0, 1.2)}, "--set epsilons="),
  ],
)
def test_advice_names_the_command_and_its_price(run, method, columns, told):
  (found,) = explanation.explain_run(run(rows(method, 1.0, women=0.04, men=0.01, **columns)))
  assert told in found.advice
  assert "`jaxfair run " in found.advice
  assert "epsilon" in found.advice.split("`")[-1]


def test_a_study_of_ones_own_may_call_a_number_settings():
  told = advice.advise("own", {"settings": 3}, {"setting": 1}, [], "jaxfair run x")
  assert told.startswith("a larger budget")


def test_a_difference_within_chance_is_said_to_be(run):
  noisy = rows("dp_sgd", 1.0, women=0.0, men=0.0)
  told = " ".join(explanation.sentences(*explanation.explain_run(run(noisy))))
  assert "Who pays: nobody beyond chance. DP-SGD, epsilon 1 takes" in told


def test_one_model_alone_blames_nobody(run):
  alone = [row for row in rows("dp_sgd", 1.0, women=0.2, men=0.0) if row["seed"] == 0]
  repeated = rows("dp_sgd", 4.0, women=0.04, men=0.01)
  found = explanation.explain_run(run(alone, repeated))
  assert "one model cannot tell" in explanation.sentences(found[0])[0]
  assert explanation.hardest(found).setting["epsilon"] == 4.0


def test_the_cost_of_the_released_model_is_told_beside_that_of_its_method(run):
  alone = [row for row in rows("released model", 1.0, women=0.2, men=0.1) if row["seed"] == 0]
  found = explanation.explain_run(run(rows("dp_sgd", 1.0, women=0.0, men=0.0), alone))
  first, *_ = explanation.sentences(explanation.hardest(found), found)
  assert "nobody beyond chance" in first
  told = r"The released model itself takes [\d.]+ points of accuracy from women \(n = 100\), 9.75 "
  assert re.search(told + r"from men \(n = 200\), on one set", first)


def test_baselines_cost_nobody_privacy(run, refused):
  """A run that was stopped before its private models has losses of baselines alone."""
  folder = run(rows("plain", 1.0, women=0.2, men=0.1))
  assert (
    explanation.explain(_reading.read_run(folder).plan, _reading.read_run(folder).table, command="")
    == []
  )
  assert "no rows by group with a cost" in refused("explain", folder)


def test_a_useless_model_explains_nothing(jaxfair, run):
  folder = run(
    rows("dp_sgd", 1.0, women=0.3, men=0.1, balanced=0.499, **CLIPPED),
    rows("pate", 1.0, women=0.02, men=0.01, **FLIPPED),
  )
  found = explanation.explain_run(folder)
  assert "not better than the majority class" in found[0].useless
  assert explanation.hardest(found).setting["method"] == "pate"
  assert "USELESS" in jaxfair("explain", folder).out


def test_places_that_lose_money_are_the_groups_of_a_decision():
  table = Table({"method": ["noisy"] * 3, "name": ["a", "b", "c"], "gain": [5.0, -90.0, 85.0]})
  made = _runs.plan(_registry.find("decisions.allotments"), {})
  (found,) = explanation.explain(made, table, command="jaxfair run x.toml")
  assert found.payer.name == "b"
  first, _, tip = explanation.sentences(found)
  assert "takes 90 dollars a year" in first
  assert "configs/decisions/fig_2_8.toml" in tip
  assert np.isnan(found.payer.size)


@pytest.mark.parametrize(
  ("write", "told"),
  [
    ({}, "is not a run directory"),
    ({"config.toml": 'study = "methods"\n'}, "has no finished cell yet"),
    (
      {"config.toml": 'study = "methods"\n', "results.csv": '"seed"\n0\n'},
      "has no rows by group with a cost",
    ),
  ],
)
def test_another_folder_is_one_line(jaxfair, tmp_path, write, told):
  folder = tmp_path / "other"
  folder.mkdir()
  for name, text in write.items():
    (folder / name).write_text(text)
  ended = jaxfair("explain", folder)
  assert ended.code == 2
  assert told in ended.err
  assert len(ended.err.splitlines()) == 1
