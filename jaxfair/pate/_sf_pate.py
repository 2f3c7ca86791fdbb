"""SF-PATE: fair models from private group attributes.

Fair student (SF_S): teachers predict the group; their noisy votes stand for
the groups of some people, on whom a fair student is trained. Fair teachers
(SF_T): each teacher is trained fair on its own part; their noisy votes on the
class label those people for a plain student. Either student stays close to
the best model that knows no groups, theta*, which costs nothing.

What protects is the vote. Any fair trainer can stand in the place of
`training.lagrangian`, and any ensemble in that of the teachers.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, training, tree
from jaxfair.pate._attribute import Protection
from jaxfair.pate._sf_release import SfPateConfig, SfRelease, private_groups, private_labels
from jaxfair.training._ensembles import Untraced
from jaxfair.types import (
  AnchoredTrainer,
  Examples,
  Fit,
  Key,
  Model,
  Params,
  PerExampleLoss,
  Trainer,
)


class SfPate(NamedTuple):
  """A fair model that keeps group membership private.

  Attributes:
    params: the student.
    fit: how it was trained; computed from the release, so free.
    released: what it learned from.
    protection: what the student, and all above, protect.
  """

  params: Params
  fit: Fit
  released: SfRelease
  protection: Protection


def fair_student(
  model: Model,
  loss: PerExampleLoss,
  people: Examples,
  config: SfPateConfig,
  *,
  num_groups: int,
  key: Key,
  teacher_model: Model | None = None,
  trainer: AnchoredTrainer = training.lagrangian,
  start: Params | None = None,
  **options: Any,
) -> SfPate:
  """Trains a fair student on privately voted groups (SF_S-PATE).

  min (1/m) sum l(f(x), y) + lambda ||theta - theta*||^2
  subject to fairness with respect to a~(x) = argmax_a n_a(x) + N(0, sigma^2)

  Args:
    model: model of the student.
    loss: `(logits, y) -> [n]` losses.
    people: public x and y, private group.
    config: `teacher` a `FitConfig`, `student` the fair trainer's config, with
      the notion in its `constraint`.
    num_groups: G.
    key: for partition, teachers, noise and student, in studies. For a release,
      pass a folder as well.
    teacher_model: model of the teachers, with G outputs; needed unless an ensemble
      is passed.
    trainer: the fair trainer.
    start: theta*, if it is already trained; trained here otherwise.
    **options: of `private_groups`: `ensemble`, `rows`, `folder`, `dataset_ledger`.

  Returns:
    The student, with the protection statement to publish with it. If the config has
    several epsilons, one student for each, stacked, without their traces; they
    start from the same parameters and see the same batches.

  Privacy:
    (epsilon, delta)-DP for the group of one person. Features and labels are
    taken to be public, and so is who takes part.

  Reference:
    Tran et al. (2023), section 5.1.
  """
  key_votes, key_plain, key_student = _keys(key)
  released = private_groups(
    teacher_model, loss, people, config, num_groups=num_groups, key=key_votes, **options
  )
  if start is None:
    start = plain_model(model, loss, people, config.plain, key=key_plain)
  fit = _students(trainer, model, loss, released.examples, config, key_student, start)
  return SfPate(fit.params, fit, released, released.protection)


def fair_teachers(
  model: Model,
  loss: PerExampleLoss,
  people: Examples,
  config: SfPateConfig,
  *,
  num_groups: int,
  num_classes: int,
  key: Key,
  teacher_model: Model | None = None,
  trainer: Trainer = training.lagrangian,
  start: Params | None = None,
  **options: Any,
) -> SfPate:
  """Trains a plain student on the votes of fair teachers (SF_T-PATE).

  min (1/m) sum l(f(x), y~) + lambda ||theta - theta*||^2
  where y~(x) = argmax_y n_y(x) + N(0, sigma^2)

  Args:
    model: model of the student, and of the teachers by default.
    loss: `(logits, y) -> [n]` losses.
    people: public x, private group; labels are public unless lambda is 0.
    config: `teacher` the fair trainer's config, `student` a `FitConfig`.
    num_groups: G.
    num_classes: C.
    key: as in `fair_student`.
    teacher_model: model of the teachers, with C outputs.
    trainer: the fair trainer of each teacher.
    start: as in `fair_student`; not used if lambda is 0.
    **options: as in `fair_student`.

  Returns:
    As in `fair_student`.

  Privacy:
    (epsilon, delta)-DP for the group of one person, and with
    `config.student.proximity=0` for group and label together: theta*, which
    is fitted to the labels, is then neither used nor computed.

  Reference:
    Tran et al. (2023), section 5.2.
  """
  key_votes, key_plain, key_student = _keys(key)
  blind = not np.any(np.asarray(config.student.proximity) > 0)
  released = private_labels(
    teacher_model or model,
    loss,
    people,
    config,
    num_groups=num_groups,
    num_classes=num_classes,
    key=key_votes,
    trainer=trainer,
    labels_private=blind,
    **options,
  )
  if blind:
    start = None
  elif start is None:
    start = plain_model(model, loss, people, config.plain, key=key_plain)
  fit = _students(training.fit, model, loss, released.examples, config, key_student, start)
  return SfPate(fit.params, fit, released, released.protection)


def plain_model(
  model: Model, loss: PerExampleLoss, people: Examples, config: training.FitConfig, *, key: Key
) -> Params:
  """theta*: the model without groups.

  Privacy:
    It is given no groups at all, so it costs nothing.
  """
  nobody = np.zeros(people.size, np.int32)
  blind = people._replace(group=nobody)
  return training.fit(model, loss, blind, config, key=key).params


def _students(
  trainer: AnchoredTrainer,
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: SfPateConfig,
  key: jax.Array,
  start: Params | None,
) -> Fit:
  """One student, or one for each epsilon as one program."""
  if not isinstance(config.epsilon, tuple):
    return trainer(model, loss, examples, config.student, key=key, initial=start, anchor=start)
  count = len(config.epsilon)
  return training.fit_many(
    model,
    loss,
    examples,
    config.student,
    trainer=Untraced(trainer),
    stacked=Examples(False, examples.y.ndim > 1, examples.group.ndim > 1),
    keys=jnp.broadcast_to(key, (count,)),
    initial=tree.repeat(start, count),
    anchor=start,
  )


def _keys(key: jax.Array) -> jax.Array:
  checks.one_key("key", key)
  return jax.random.split(key, 3)
