"""Settings that are chosen from public numbers; docs/private_training.md tells the rule."""

import math

import pytest

from jaxfair import checks, methods
from jaxfair.accounting import Budget
from jaxfair.methods import _recipe
from jaxfair.methods._method import Sizes

BUDGET = Budget(1.0, 1e-6)


def planned(name, sizes, budget=BUDGET, **given):
  method = methods.get(name)
  return method.plan(method.settings(**given), sizes, budget)


def sizes(private=5000, public=2000):
  return Sizes(private, public, (10,), 2, 2)


@pytest.mark.parametrize(
  ("size", "epsilon", "steps"), [(5000, 1.0, 60), (20_000, 1.0, 120), (5000, 0.25, 30)]
)
def test_steps_grow_with_the_root_of_n_epsilon(size, epsilon, steps):
  own = planned("dp_sgd", sizes(size), Budget(epsilon, 1e-6)).settings
  assert (own.steps, own.batch_size) == (steps, size // 4)
  assert (own.learning_rate, own.optimizer, own.row_norm) == (6.0, "momentum", 1.0)


def test_few_and_many_people_are_within_bounds():
  assert planned("dp_sgd", sizes(100)).settings.steps == 10
  assert planned("dp_sgd", sizes(100)).settings.batch_size == 100
  many = planned("dp_sgd", sizes(10**6)).settings
  assert (many.steps, many.batch_size) == (400, 32_768)


def test_a_given_value_is_kept():
  given = {"steps": 7, "batch_size": 90, "learning_rate": 0.3, "optimizer": "sgd", "row_norm": 0.0}
  given |= {"bands": 3}
  plan = planned("dp_sgd", sizes(), **given)
  assert {name: getattr(plan.settings, name) for name in given} == given
  assert plan.row_norm is None
  assert (plan.config.bands, plan.config.event(5000).bands) == (3, 3)
  with pytest.raises(checks.ArgumentError, match=r"bands=5 .*smaller batch_size"):
    planned("dp_sgd", sizes(), bands=5)  # a batch is a quarter of the people
  assert planned("pate", sizes(), num_teachers=90, queries=11).config.queries == 11
  assert planned("output_perturbation", sizes(), weight_decay=0.5).config.weight_decay == 0.5


def test_teachers_are_asked_as_much_as_noise_of_a_third_of_them_pays_for():
  plan = planned("pate", sizes(20_000))
  assert plan.settings.num_teachers == 566  # sqrt(16 n) at epsilon 1
  assert plan.config.rule.sigma == pytest.approx(566 / 3, rel=0.02)
  assert planned("pate", sizes()).settings.num_teachers == 250  # 20 people each
  assert planned("pate", sizes(public=30)).config.queries == 30


@pytest.mark.parametrize("size", [1, 9, 10, 999, 1000, 48_842, 10**7])
def test_delta_is_a_power_of_ten_below_a_tenth_of_one_over_n(size):
  delta = _recipe.default_delta(size)
  assert delta <= 0.1 / size * (1 + 1e-12) < 10 * delta
  assert math.log10(delta) == pytest.approx(round(math.log10(delta)))


def test_recipes_of_the_trainer_are_settings_of_the_method():
  given = {"average": 0.9, "chunk_size": 64, "rule": "normalize", "bands": 2, "steps": 20}
  config = planned("dp_sgd", sizes(), **given).config
  assert {name: getattr(config, name) for name in given} == given
  bare = planned("dp_sgd", sizes(), steps=20, bands=2)
  assert config.event(5000) == bare.config.event(5000)  # none of them has a price
  for name in ("dp_sgd_global", "dp_sgd_f", "dp_sgd_parity", "fair_dp_sgd"):
    own = planned(name, sizes(), average=0.9, chunk_size=64).config
    assert (own.average, own.chunk_size) == (0.9, 64)
    assert not {"rule", "views"} & set(methods.get(name).settings.__dataclass_fields__)
  tuned = planned("tuned_dp_sgd", sizes(), average=0.9).config.trainings
  assert {one.average for one in tuned} == {0.9}
  with pytest.raises(checks.ArgumentError, match="average=1"):
    methods.get("dp_sgd").settings(average=1.0)


def test_an_adaptive_bound_is_paid_for_and_has_its_floor():
  plan = planned("dp_sgd", sizes(), clip_quantile=0.4, lowest_clip=0.2, count_noise=30.0)
  adaptive = plan.config.adaptive
  assert (adaptive.quantile, adaptive.lowest, adaptive.count_noise) == (0.4, 0.2, 30.0)
  bare = planned("dp_sgd", sizes())
  alone, sums = bare.config.noise_multiplier, plan.config.noise_multiplier
  assert sums > alone  # the counts take their part
  assert adaptive.joint_multiplier(sums) == pytest.approx(alone, rel=1e-3)
  assert plan.guarantee.guarantee.epsilon <= BUDGET.epsilon


def test_views_are_of_images():
  images = Sizes(5000, 0, (8, 8, 1), 2, 2)
  config = planned("dp_sgd", images, views=3, shift=1, network="standardized_cnn").config
  assert (config.views, config.augment.pixels) == (3, 1)
  assert planned("dp_sgd", images).config.augment is None
  with pytest.raises(checks.ArgumentError, match=r"views=3 are of images .* \(10,\)"):
    planned("dp_sgd", sizes(), views=3)
