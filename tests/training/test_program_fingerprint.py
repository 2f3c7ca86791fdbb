"""Fingerprints of models and losses: the same in any process, or different."""

import pathlib

import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers import subprocesses
from jaxfair import models
from jaxfair.training import DpSgdConfig, FitConfig, parity_penalty
from jaxfair.training._program_fingerprint import fingerprint, programs
from jaxfair.types import Examples, Model

MODEL = models.mlp((5,), 3)
X = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
PEOPLE = Examples(X, np.arange(8, dtype=np.int32) % 3, np.zeros(8, np.int32))


def found(model=MODEL, loss=models.cross_entropy, config=FitConfig()):
  return programs(model, loss, PEOPLE, config)


def differing(first, second):
  assert first.keys() == second.keys()
  return [name for name in first if first[name] != second[name]]


class Net(nn.Module):
  """A flax module with a constant of its own."""

  act: str = "relu"
  shift: float = 0.0

  @nn.compact
  def __call__(self, x):
    x = nn.GroupNorm(num_groups=1)(nn.Dense(600)(x))
    x = getattr(nn, self.act)(x) + jnp.asarray(SHIFT) + self.shift
    return nn.Dense(3)(x)


SHIFT = np.linspace(0, 1, 600, dtype=np.float32)


def haiku_net(act):
  return models.from_haiku(lambda x: hk.Linear(3)(act(hk.Linear(5)(x))))


def test_another_activation_is_another_model():
  assert differing(found(), found(models.mlp((5,), 3, "tanh"))) == ["model"]
  one, other = (models.from_flax(Net(act)) for act in ("relu", "tanh"))
  assert differing(found(one), found(other)) == ["model"]
  one, other = map(haiku_net, (jax.nn.relu, jnp.tanh))
  assert differing(found(one), found(other)) == ["model"]


def test_another_loss_optimizer_or_penalty_is_told_by_its_name():
  def smooth(logits, y):
    return models.cross_entropy(0.99 * logits, y)

  assert differing(found(), found(loss=smooth)) == ["loss"]
  heavy = FitConfig(optimizer=lambda rate: optax.sgd(rate, momentum=0.9))
  heavier = FitConfig(optimizer=lambda rate: optax.sgd(rate, momentum=0.8))
  assert differing(found(config=heavy), found(config=heavier)) == ["optimizer"]

  def fair(x, lam, place="after"):
    term = parity_penalty(MODEL, x, [0, 1] * 4, num_groups=2, lam=lam, placement=place)
    return found(config=DpSgdConfig(penalties=(term,)))

  assert differing(fair(X, 1.0), fair(X, 1.0)) == []
  moved = X + np.float32(1e-6) * (np.arange(8) == 7)[:, None]
  assert differing(fair(X, 1.0), fair(moved, 1.0)) == ["penalty"]
  assert differing(fair(X, 1.0), fair(X, 1.1)) == ["penalty"]
  assert differing(fair(X, 1.0), fair(X, 1.0, "inside")) == ["penalty"]


def test_stacked_numbers_are_looked_at_once():
  rates = FitConfig(learning_rate=np.array([0.1, 0.2]))
  assert differing(found(), found(config=rates)) == []


def test_first_parameters_count():
  def start(key, x_one):
    return jax.tree.map(lambda leaf: 2 * leaf, MODEL.init(key, x_one))

  assert differing(found(), found(Model(start, MODEL.apply))) == ["model"]


def test_own_rules_for_gradients_count():
  def rule(scale):
    @jax.custom_vjp
    def same(x):
      return x

    same.defvjp(lambda x: (x, None), lambda _, g: (scale * g,))
    return found(loss=lambda logits, y: models.cross_entropy(same(logits), y))

  assert differing(rule(1.0), rule(1.0)) == []
  assert differing(rule(1.0), rule(2.0)) == ["loss"]


def test_constants_count_to_the_last_bit():
  def with_constant(values):
    inner = jax.jit(lambda x: x * jnp.asarray(values))
    return fingerprint(lambda x: inner(x), np.float32(0))

  many = np.linspace(0, 1, 2000, dtype=np.float32)  # text would leave some out
  other = many.copy()
  other[1000] = np.nextafter(other[1000], np.float32(2))
  assert with_constant(many) == with_constant(many.copy())
  assert with_constant(many) != with_constant(other)
  tiny = np.nextafter(np.float32(0.1), np.float32(1))
  assert fingerprint(lambda x: x * np.float32(0.1), X) != fingerprint(lambda x: x * tiny, X)


def test_which_value_goes_where_counts():
  assert fingerprint(lambda a, b: a - b, X, X) != fingerprint(lambda a, b: b - a, X, X)


def test_names_do_not_count():
  @jax.jit
  def one(x):
    return jnp.sin(x)

  @jax.jit
  def other(y):
    return jnp.sin(y)

  assert fingerprint(lambda x: one(x), X) == fingerprint(lambda z: other(z), X)


def everything():
  """Fingerprints of models that hold what text of programs may hide."""
  fair = parity_penalty(MODEL, X, [0, 1] * 4, num_groups=2, lam=1.0)
  return [
    found(config=DpSgdConfig(penalties=(fair,))),
    found(models.from_flax(Net())),
    found(haiku_net(jax.nn.relu)),
    found(haiku_net(jax.nn.gelu)),
    found(config=FitConfig(optimizer=optax.adamw)),
  ]


CODE = """
import json, sys
sys.path[:0] = %r
import test_program_fingerprint
print(json.dumps(test_program_fingerprint.everything()))
"""


@pytest.mark.slow
def test_two_processes_find_the_same(monkeypatch):
  here = pathlib.Path(__file__).parent
  found = []
  for seed, devices in (("1", 1), ("2", 3)):
    monkeypatch.setenv("PYTHONHASHSEED", seed)
    code = CODE % [str(here), str(here.parent)]
    found.append(subprocesses.on_devices(code, devices))
  assert found[0] == found[1] == everything()
