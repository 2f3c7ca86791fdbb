"""Planned answers: from the release and public people alone, and carried by the folder."""

import dataclasses
import subprocess
import sys

import jax
import numpy as np
import pytest

from jaxfair import accounting, checks, methods
from jaxfair.fairness import _answer_plan
from jaxfair.methods._answer_plans import answer_targets
from jaxfair.methods._serving import serve
from jaxfair.types import Examples


def people(size, seed):
  """Two groups that differ in their classes, which the first feature tells."""
  rng = np.random.default_rng(seed)
  group = rng.integers(0, 2, size).astype(np.int32)
  y = (rng.random(size) < 0.25 + 0.5 * group).astype(np.int32)
  x = rng.normal(size=(size, 3)).astype(np.float32) + 3 * y[:, None] * np.float32([1, 0, 0])
  return Examples(x, y, group)


def population(**changes):
  own = methods.Population(people(600, 0), ("no", "yes"), ("a", "b"), public=people(400, 1))
  return dataclasses.replace(own, **changes)


def planned(name="fair_soft_pate", **settings):
  method = methods.get(name)
  chosen = method.settings(max_gap=0.05, min_count=20, plan_answers=True, **settings)
  return method, method.plan(chosen, population().sizes, accounting.Budget(8.0, 1e-5))


@pytest.fixture(scope="module")
def release(tmp_path_factory):
  folder = tmp_path_factory.mktemp("planned")
  method, plan = planned()
  made = method.release(plan, population(), folder=folder, key=jax.random.key(0))
  return folder / "release", plan, made


@pytest.mark.slow
def test_the_release_carries_the_plan_and_the_card_says_so(release):
  folder, plan, made = release
  found = methods.load(folder)
  public = population().public
  counts = np.zeros((2, 2))
  np.add.at(counts, (public.group, made.predict(public.x)), 1)
  expected = _answer_plan.planned_targets(counts)
  np.testing.assert_array_equal(found.answer_targets, expected)
  assert "were planned on public people" in (folder / "model_card.md").read_text()
  plain = dataclasses.replace(made, answer_targets=None)
  plain.save(folder.parent / "plain")
  assert "planned" not in (folder.parent / "plain" / "model_card.md").read_text()
  # What is computed from parameters reads no private person and no label.
  other = population(private=people(600, 7), public=public._replace(y=1 - public.y))
  np.testing.assert_array_equal(answer_targets(plan, made.params, other), expected)


@pytest.mark.slow
def test_another_process_continues_the_plan_with_its_state(release, tmp_path):
  folder, _, made = release
  asking = people(800, 2)
  whole = serve(made, asking.x, asking.group)
  state = tmp_path / "state.json"
  first = serve(methods.load(folder), asking.x[:501], asking.group[:501], state=state)
  np.testing.assert_array_equal(first.labels, whole.labels[:501])
  np.savez(tmp_path / "rest.npz", x=asking.x[501:], group=asking.group[501:])
  told = subprocess.run(
    [sys.executable, "-m", "jaxfair", "predict", folder, tmp_path / "rest.npz", "--state", state],
    capture_output=True,
    text=True,
    check=True,
  )
  shown = [line.split(",")[1] for line in told.stdout.splitlines()[1:]]
  names = np.array([*made.class_names, ""])  # -1: nothing is shown
  assert shown == names[whole.labels[501:]].tolist()
  alone = serve(dataclasses.replace(made, answer_targets=None), asking.x, asking.group)
  covered, before = ((served.labels >= 0).mean() for served in (whole, alone))
  assert covered > before + 0.03, (covered, before)
  gate = made.abstainer(state)
  assert gate.gap < 0.05


def test_a_plan_needs_a_margin_for_predictions():
  for name, settings in (
    ("fairpate", {"notion": "equalized_odds"}),
    ("pate_s_in", {}),
    ("fair_dp_sgd", {}),
  ):
    with pytest.raises(checks.ArgumentError, match="these settings keep none"):
      methods.get(name).settings(plan_answers=True, **settings)
  assert methods.get("pate_s_in").settings(plan_answers=True, max_gap=0.1).plan_answers


@pytest.mark.parametrize("name", ["fairpate", "pate_s_pre", "pate_s_in"])
def test_every_method_with_a_margin_can_plan(name):
  _, plan = planned(name)
  params = plan.model.init(jax.random.key(0), np.zeros(3, np.float32))
  assert answer_targets(plan, params, population()).shape == (2,)
  unplanned = dataclasses.replace(
    plan, settings=dataclasses.replace(plan.settings, plan_answers=False)
  )
  assert answer_targets(unplanned, params, population()) is None
