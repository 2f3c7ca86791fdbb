"""Every trainer goes through the same tests; a new one adds a row.

A row names a pure function of people and a key. What a trainer cannot do (be
traced, do without a key, ignore groups) is said in the row, with the reason,
not in the tests.
"""

import json
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import numpy as np
import optax
import pytest
from absl.testing import parameterized

from jaxfair import checks, fairness, models, privacy, training
from jaxfair.training import (
  DpSgdConfig,
  FairRobustConfig,
  FitConfig,
  LagrangianConfig,
  OutputPerturbationConfig,
  PrivateLagrangianConfig,
  _driver,
  _group_rules,
  dp_sgd,
  fair_dp_sgd,
  fair_robust,
  fit,
  lagrangian,
  output_perturbation,
  private_lagrangian,
)
from jaxfair.training._ensembles import map_members
from jaxfair.training._erm import SolveConfig, solve
from jaxfair.types import Examples, Fit

KEY = jax.random.key(11)
MODEL = models.logistic(3)
PLAIN = FitConfig(learning_rate=0.2, steps=5, batch_size=8, optimizer=optax.sgd)
POISSON = FitConfig(
  learning_rate=0.2, steps=5, batch_size=8, optimizer=optax.sgd, sampling="poisson"
)


class Row(NamedTuple):
  """A trainer and what it can do.

  Attributes:
    train: `(examples, key) -> Fit`.
    untraceable: why it cannot be inside jit and vmap; "" if it can.
    without_key: why it runs with key=None; "" if it refuses that.
    reads_groups: why other groups give other parameters; "" if they do not.
    random: another key gives other parameters.
    private: leaves broken rows out, where others refuse them: an error would
      tell that somebody's record is broken.
    rounds: the number of devices may move the last bits: the compiler writes
      the derivative of a quotient in two ways.
  """

  train: Callable
  untraceable: str = ""
  without_key: str = ""
  reads_groups: str = ""
  random: bool = True
  private: bool = False
  rounds: bool = False


def plain(examples, key):
  return fit(MODEL, models.cross_entropy, examples, PLAIN, key=key)


def poisson(examples, key):
  return fit(MODEL, models.cross_entropy, examples, POISSON, key=key)


def optimum(examples, key):
  config = SolveConfig(weight_decay=0.1)
  return solve(MODEL, models.cross_entropy, examples, config, key=key)


def noisy_steps(examples, key):
  config = DpSgdConfig(learning_rate=0.2, steps=5, batch_size=8)
  return dp_sgd(MODEL, models.cross_entropy, examples, config, key=key)


def jitter(x, key):
  return x + 0.1 * jax.random.normal(key, x.shape)


def noisy_with_options(examples, key):
  config = DpSgdConfig(
    learning_rate=0.2,
    steps=5,
    batch_size=6,
    rule="normalize",
    adaptive=privacy.QuantileClip(lowest=0.1),
    augment=jitter,
    views=2,
    chunk_size=5,
    average=0.5,
    bands=2,
    optimizer=training.named_optimizer("momentum", "cosine", steps=5),
  )
  return dp_sgd(MODEL, models.cross_entropy, examples, config, key=key)


def own_bounds(examples, key):
  rule = _group_rules.GroupClip(2)
  config = DpSgdConfig(learning_rate=0.2, steps=5, batch_size=8, chunk_size=5, group_rule=rule)
  return dp_sgd(MODEL, models.cross_entropy, examples, config, key=key)


def equal_rates(examples, key):
  rule = _group_rules.GroupParity(2, count_noise=2.0)
  config = DpSgdConfig(learning_rate=0.2, steps=5, batch_size=8, group_rule=rule)
  return dp_sgd(MODEL, models.cross_entropy, examples, config, key=key)


def noisy_and_fair(examples, key):
  # Public people of their own: private groups are not looked at.
  public = make(seed=99)
  config = DpSgdConfig(learning_rate=0.2, steps=5, batch_size=8)
  return fair_dp_sgd(
    MODEL,
    models.cross_entropy,
    examples,
    config,
    public_x=public.x,
    public_group=public.group,
    num_groups=2,
    lam=1.0,
    sample=16,
    key=key,
  )


def constrained(examples, key):
  # Loose limits: groups are looked at, and change nothing.
  config = LagrangianConfig(
    constraint=fairness.constraints.equalized_odds(2, 3),
    learning_rate=0.2,
    tolerance=2.0,
    rounds=2,
    steps_per_round=3,
    batch_size=8,
    optimizer=optax.sgd,
  )
  found = lagrangian(MODEL, models.cross_entropy, examples, config, key=key)
  return found._replace(trace=found.trace.loss)


def without_penalty(examples, key):
  config = FairRobustConfig(num_groups=2, plain=PLAIN)
  return fair_robust(MODEL, models.cross_entropy, examples, config, key=key)


def private_groups(examples, key):
  config = PrivateLagrangianConfig(
    constraint=fairness.constraints.equalized_odds(2, 3),
    learning_rate=0.2,
    noise_multiplier=0.1,
    dual_noise=1.0,
    count_noise=1.0,
    rounds=2,
    steps_per_round=3,
    batch_size=8,
    optimizer=optax.sgd,
  )
  return private_lagrangian(MODEL, models.cross_entropy, examples, config, key=key)


def noisy_optimum(examples, key):
  config = OutputPerturbationConfig(weight_decay=0.1)
  return output_perturbation(MODEL, models.cross_entropy, examples, config, key=key)


TRAINERS = {
  "fit": Row(plain),
  "fit, Poisson batches": Row(poisson),
  "fair_robust": Row(without_penalty),
  "solve": Row(
    optimum, untraceable="computes in float64, and raises if it does not converge", random=False
  ),
  "dp_sgd": Row(noisy_steps, private=True),
  "dp_sgd, every option": Row(noisy_with_options, private=True),
  "dp_sgd, bounds by group": Row(
    own_bounds, private=True, reads_groups="clip bounds follow the groups' gradients"
  ),
  "dp_sgd, parity": Row(
    equal_rates, private=True, reads_groups="rates are held together", rounds=True
  ),
  "fair_dp_sgd": Row(noisy_and_fair, private=True, rounds=True),
  "lagrangian": Row(constrained),
  "private_lagrangian": Row(private_groups, reads_groups="its multipliers follow the groups' gaps"),
  "output_perturbation": Row(
    noisy_optimum,
    untraceable="solves in float64, and draws exact noise on the host",
    without_key="a release takes its noise from the operating system",
    private=True,
  ),
}
TRACEABLE = [name for name, row in TRAINERS.items() if not row.untraceable]
UNTRACEABLE = [name for name, row in TRAINERS.items() if row.untraceable]
every_trainer = pytest.mark.parametrize("name", TRAINERS)
traceable_trainer = pytest.mark.parametrize("name", TRACEABLE)


def make(seed=0, n=40):
  rng = np.random.default_rng(seed)
  y = rng.integers(0, 3, n).astype(np.int32)
  x = (rng.normal(size=(n, 4)) + y[:, None]).astype(np.float32)
  return Examples(x, y, rng.integers(0, 2, n).astype(np.int32))


def train(name, examples, key=KEY):
  return TRAINERS[name].train(examples, key)


def leaves(tree):
  return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def same_bits(a, b):
  return all(np.array_equal(u, v) for u, v in zip(leaves(a), leaves(b), strict=True))


def close(a, b):
  for ours, theirs in zip(leaves(a), leaves(b), strict=True):
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@every_trainer
def test_is_pure(name):
  people = make()
  kept = [leaf.copy() for leaf in people]
  first = train(name, people)
  assert same_bits(first, train(name, people))
  for leaf, before in zip(people, kept, strict=True):
    np.testing.assert_array_equal(leaf, before)
  another = train(name, people, jax.random.key(12))
  changed = not same_bits(first.params, another.params)
  assert changed == TRAINERS[name].random


@every_trainer
def test_gives_float32_parameters_of_the_model_s_shape(name):
  params = train(name, make()).params
  expected = jax.eval_shape(MODEL.init, KEY, make().x[0])
  assert jax.tree.structure(params) == jax.tree.structure(expected)
  for found, shape in zip(leaves(params), jax.tree.leaves(expected), strict=True):
    assert (found.shape, found.dtype) == (shape.shape, shape.dtype)
    assert np.isfinite(found).all()


def test_every_public_trainer_has_a_row():
  arguments = {"model", "loss", "examples", "config", "key"}
  trainers = {
    name
    for name in training.__all__
    if (hints := getattr(getattr(training, name), "__annotations__", {}))
    and hints.get("return") is Fit
    and arguments <= set(hints)
  }
  internal = {"solve"}  # of output perturbation; it keeps the contract all the same
  assert trainers == {name.split(",")[0] for name in TRAINERS} - internal


@pytest.mark.slow
class TestVariants(chex.TestCase):
  """The same result wherever the people are, inside jit and out."""

  @chex.variants(with_jit=True)
  @parameterized.parameters(*TRACEABLE)
  def test_compiled(self, name):
    trained = self.variant(TRAINERS[name].train)(make(), KEY)
    close(trained, train(name, make()))

  @chex.variants(without_jit=True, with_device=True, without_device=True)
  @parameterized.parameters(*TRAINERS)
  def test_not_compiled(self, name):
    trained = self.variant(lambda people: train(name, people))(make())
    assert same_bits(trained, train(name, make()))


@pytest.mark.parametrize("name", UNTRACEABLE)
def test_what_cannot_be_compiled_says_so(name):
  people = make()
  for function in (jax.jit(TRAINERS[name].train), TRAINERS[name].train):
    mapped = jax.vmap(function, in_axes=(None, 0))
    with pytest.raises(checks.ArgumentError, match="inside jit, vmap or grad"):
      mapped(people, jax.random.split(KEY, 2))


@pytest.mark.slow
@traceable_trainer
def test_can_be_mapped_over_keys(name):
  people, keys = make(), jax.random.split(KEY, 2)
  found = jax.vmap(TRAINERS[name].train, in_axes=(None, 0))(people, keys)
  close([leaf[1] for leaf in leaves(found)], leaves(train(name, people, keys[1])))


@pytest.mark.slow
@traceable_trainer
def test_feeds_made_in_blocks_change_no_bit(name, monkeypatch):
  # Four of five steps and one that is left, or one of two rounds.
  whole = train(name, make())
  monkeypatch.setattr(_driver, "BLOCK", 1 if "lagrangian" in name else 4)
  jax.clear_caches()
  made = train(name, make())
  jax.clear_caches()
  assert same_bits(whole, made)


@pytest.mark.slow
@traceable_trainer
def test_can_be_mapped_over_people_and_keys(name):
  keys = jax.random.split(KEY, 2)
  parts = [make(seed) for seed in range(2)]
  stacked = jax.tree.map(lambda *rows: np.stack(rows), *parts)
  found = jax.vmap(TRAINERS[name].train)(stacked, keys)
  alone = train(name, parts[1], keys[1])
  close([leaf[1] for leaf in leaves(found)], leaves(alone))


@every_trainer
def test_an_empty_group_is_nothing_special(name):
  people = make()
  one_group = people._replace(group=np.ones_like(people.group))
  found = train(name, one_group)
  assert all(np.isfinite(leaf).all() for leaf in leaves(found))
  unchanged = same_bits(train(name, people), found)
  assert unchanged == (not TRAINERS[name].reads_groups)


@every_trainer
def test_one_class_can_be_trained_on(name):
  people = make()
  found = train(name, people._replace(y=np.ones_like(people.y)))
  assert all(np.isfinite(leaf).all() for leaf in leaves(found.params))
  if not TRAINERS[name].private:
    logits = MODEL.apply(found.params, people.x)
    assert np.mean(np.argmax(logits, -1) == 1) > 0.9


def refused_or_left_out(name, people, told):
  if not TRAINERS[name].private:
    with pytest.raises(checks.ArgumentError, match=told):
      train(name, people)
  else:
    params = train(name, people).params
    assert all(np.isfinite(leaf).all() for leaf in leaves(params))


@every_trainer
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_non_finite_features_are_refused_or_left_out(name, value):
  people = make()
  people.x[3, 1] = value
  told = r"1 rows with NaN .* row 3.*drop or impute"
  refused_or_left_out(name, people, told)


@every_trainer
@pytest.mark.parametrize("label", [-1, 3])
def test_labels_without_an_output_are_refused_or_left_out(name, label):
  people = make()
  people.y[0] = label
  refused_or_left_out(name, people, r"examples\.y has ids .*0\.\.2")


@every_trainer
def test_nobody_is_refused(name):
  with pytest.raises(checks.ArgumentError, match="examples is empty"):
    train(name, make(n=0))


@every_trainer
def test_people_of_unequal_length_are_refused(name):
  people = make()
  with pytest.raises(checks.ArgumentError, match="y has 39"):
    train(name, people._replace(y=people.y[:-1]))


@every_trainer
@pytest.mark.parametrize("key", [None, 0, jax.random.key_data(KEY)])
def test_what_is_no_key_is_refused(name, key):
  if key is None and TRAINERS[name].without_key:
    assert not same_bits(train(name, make(), None), train(name, make(), None))
    return
  with pytest.raises(checks.ArgumentError, match=r"pass key=jax\.random\.key"):
    train(name, make(), key)


@every_trainer
def test_several_keys_are_refused(name):
  with pytest.raises(checks.ArgumentError, match="key is an array of 2 keys"):
    train(name, make(), jax.random.split(KEY, 2))


def results(half):
  """Of every other traceable trainer, over one device and over all: run elsewhere."""
  parts = [make(seed) for seed in range(5)]
  stacked = jax.tree.map(lambda *rows: np.stack(rows), *parts)
  keys = jax.random.split(KEY, 5)

  def over(name, count):
    found = map_members(
      lambda own, common: train(name, *own),
      (stacked, keys),
      None,
      chunk=1,
      devices=jax.devices()[:count],
    )
    return [leaf.ravel().tolist() for leaf in leaves(found)]

  return json.dumps({n: [over(n, 1), over(n, jax.device_count())] for n in TRACEABLE[half::2]})


ELSEWHERE = f"""
import runpy
print(runpy.run_path({str(pathlib.Path(__file__))!r})["results"](%d))
"""


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])  # as for users: together they compile for a minute
def test_the_number_of_devices_changes_no_bit(on_devices, half):
  found = on_devices(ELSEWHERE % half, 4)
  assert list(found) == TRACEABLE[half::2]
  for name, (on_one, on_all) in found.items():
    if TRAINERS[name].rounds:
      close(on_one, on_all)
    else:
      assert on_one == on_all
