"""The student: learns from public examples and released labels."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, models, training
from jaxfair.pate._aggregation import NO_ANSWER
from jaxfair.types import Examples, Features, Fit, Keys, LabelsLike, Model, PerExampleLoss, Scores


def train_student(
  model: Model,
  loss: PerExampleLoss,
  x: Features,
  labels: LabelsLike,
  config: training.FitConfig = training.FitConfig(),
  *,
  keys: Keys,
  chunk: int | None = None,
  devices: Sequence[jax.Device] | None = None,
) -> Fit:
  """Trains one student for every key, in one compiled program.

  mean over answered x of sum_c a_c(x) l(f(x), c) + weight_decay/2 ||theta||^2

  The papers write `lambda ||theta||^2`, without the half: that is
  `FitConfig(weight_decay=2 * lambda)`.

  Args:
    model: any model.
    loss: l, `(logits, y) -> [n]` losses of class ids.
    x: [n, ...] public examples.
    labels: [n] class ids, `NO_ANSWER` where there is none; or [n, C] weights
      a_c, raw or projected to the simplex. With one more axis in front, every
      key has its own: [k, n] or [k, n, C].
    config: settings, shared or with stacked numbers of shape [k].
    keys: [k] keys, one per student.
    chunk: students side by side on a device; None chooses.
    devices: where to run; all local devices by default.

  Returns:
    `Fit` with a leading axis of length k.

  Privacy:
    Post-processing of the labels, which costs no privacy. The trace depends on
    the labels, not on the private people.
  """
  checks.key("keys", keys)
  checks.require(keys.ndim == 1, "keys must be a vector, one key per student")
  soft = jnp.issubdtype(jnp.result_type(labels), jnp.floating)
  each = _check_labels(np.shape(x), np.shape(labels), soft, len(keys))
  num_classes = _num_classes(model, x)
  if soft:
    checks.require(
      np.shape(labels)[-1] == num_classes,
      f"labels has weights for {np.shape(labels)[-1]} classes, but the model "
      f"has {num_classes}; pass one weight per class",
    )
    targets, loss = jnp.asarray(labels, jnp.float32), weighted(loss)
  else:
    x, targets, partly = _answered(x, labels, num_classes)
    loss = weighted(loss) if partly else loss
  group = np.zeros(np.shape(x)[0], np.int32)
  return training.fit_many(
    model,
    loss,
    Examples(x, targets, group),
    config,
    keys=keys,
    stacked=Examples(False, each, False),
    chunk=chunk,
    devices=devices,
  )


def weighted(loss: PerExampleLoss) -> PerExampleLoss:
  """The loss against weights of the classes.

  (logits, a) -> sum_c a_c loss(logits, c)

  Args:
    loss: `(logits, y) -> [n]` losses of class ids.

  Returns:
    `(logits, [n, C] weights) -> [n]`, linear in the weights, which may be
    negative. Equal losses give equal results, so nothing compiles twice.
  """
  if loss is models.cross_entropy:
    return models.soft_cross_entropy
  return _Weighted(loss)


@dataclasses.dataclass(frozen=True)
class _Weighted:
  loss: PerExampleLoss

  def __call__(self, logits: jax.Array, weights: Scores) -> jax.Array:
    n, num_classes = logits.shape

    def of_class(label: jax.Array) -> jax.Array:
      return self.loss(logits, jnp.full(n, label))

    losses = jax.vmap(of_class, out_axes=1)(jnp.arange(num_classes))
    return jnp.sum(weights * losses, axis=-1)


def _answered(x: Features, labels: LabelsLike, num_classes: int) -> tuple[Any, Any, bool]:
  """Examples, targets, and whether the targets are weights.

  One mask for all students: the others are dropped. A mask for each: a row
  without an answer has weight 0 and the others n / answered, so that the mean
  is over the answered ones.
  """
  if not checks.concrete(labels):
    return x, _one_hot(labels, num_classes), True
  labels = np.asarray(labels, np.int32)
  known = labels != NO_ANSWER
  checks.ids("labels", labels[known], num_classes)
  checks.require(
    bool(known.any(axis=-1).all()),
    "no query was answered, so there is nothing to learn from; lower the threshold or the noise",
  )
  if known.all():
    return x, labels, False
  if labels.ndim == 1:
    return x[known], labels[known], False
  return x, _one_hot(labels, num_classes), True


def _one_hot(labels: LabelsLike, num_classes: int) -> jax.Array:
  chosen = jnp.asarray(labels)[..., None] == jnp.arange(num_classes)
  known = jnp.any(chosen, axis=-1)
  answered = jnp.maximum(jnp.sum(known, axis=-1, keepdims=True), 1)
  scale = known.shape[-1] / answered
  return chosen * scale[..., None].astype(jnp.float32)


def _num_classes(model: Model, x: Features) -> int:
  one = jax.ShapeDtypeStruct(np.shape(x)[1:], jnp.result_type(x))
  params = jax.eval_shape(model.init, jax.random.key(0), one)
  batch = jax.ShapeDtypeStruct((1, *one.shape), one.dtype)
  return int(jax.eval_shape(model.apply, params, batch).shape[-1])


def _check_labels(x: tuple[int, ...], labels: tuple[int, ...], soft: bool, count: int) -> bool:
  """Whether every student has its own labels."""
  shared = (x[0],)
  rows = labels[:-1] if soft else labels
  checks.require(
    rows in (shared, (count, *shared)),
    f"labels has shape {labels} for {x[0]} examples and {count} keys; pass "
    "class ids [n] or [k, n], or float weights [n, C] or [k, n, C]",
  )
  return len(rows) == 2
