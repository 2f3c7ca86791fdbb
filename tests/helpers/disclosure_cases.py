"""Small people and models for tests of personalized disclosure."""

import itertools

import jax.numpy as jnp
import numpy as np

from jaxfair import disclosure, models
from jaxfair.disclosure import _network, _questionnaire

COLUMNS = ("age", "job", "job", "job", "pay", "debt")
FEATURES = ("age", "job=a", "job=b", "job=c", "pay", "debt")


def people(count, seed=0):
  """Correlated people; one column of words, three numbers."""
  rng = np.random.default_rng(seed)
  shared = rng.normal(size=(count, 1))
  numbers = np.tanh(0.7 * shared + 0.6 * rng.normal(size=(count, 3)))
  word = np.digitize(shared[:, 0] + rng.normal(size=count), (-0.5, 0.7))
  words = 2 * np.eye(3)[word] - 1
  x = np.concatenate([numbers[:, :1], words, numbers[:, 1:]], axis=1)
  return x.astype(np.float32)


def linear(num_classes=2, seed=1):
  """A softmax regression with random weights."""
  rng = np.random.default_rng(seed)
  params = {
    "w": jnp.asarray(rng.normal(size=(6, num_classes)), jnp.float32),
    "b": jnp.asarray(0.3 * rng.normal(size=num_classes), jnp.float32),
  }
  return models.logistic(num_classes), params


def network(num_classes=2, seed=2, width=5):
  """A ReLU network with random weights and biases."""
  rng = np.random.default_rng(seed)
  sizes = (6, width, width, num_classes)
  params = {
    f"layer_{i}": {
      "w": jnp.asarray(rng.normal(size=shape) / 1.5, jnp.float32),
      "b": jnp.asarray(0.2 * rng.normal(size=shape[1]), jnp.float32),
    }
    for i, shape in enumerate(itertools.pairwise(sizes))
  }
  return models.mlp((width, width), num_classes), params


def asked(*sensitive, step=0.5):
  """Questions about these columns, or about all."""
  return disclosure.questions(FEATURES, COLUMNS, sensitive or None, step=step)[1]


def write_questionnaire(folder):
  """A run directory that `jaxfair ask` can ask from."""
  _, params = linear()
  folder.mkdir(parents=True)
  _questionnaire.Questionnaire(
    title="Loans",
    class_names=("refused", "granted"),
    feature_names=FEATURES,
    columns=COLUMNS,
    sensitive=("age", "job", "pay", "debt"),
    network=_network.as_network(params),
    gaussian=disclosure.fit_gaussian(people(2000, seed=9)),
    center=np.zeros(6, "f4"),
    factor=np.ones(6, "f4"),
  ).save(folder / _questionnaire.FILE)
  return folder
