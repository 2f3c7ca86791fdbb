"""SF-PATE: fair models from private group attributes.

Fair student (SF_S): teachers predict the group; their noisy votes stand for
the groups of some people, on whom a fair student is trained. Fair teachers
(SF_T): each teacher is trained fair on its own part; their noisy votes on the
class label those people for a plain student. Either student stays close to
the best model that knows no groups, theta*, which costs nothing.

What protects is the vote. Any fair trainer can stand in the place of
`training.lagrangian`, and any ensemble in that of the teachers.
"""

import pathlib
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxfair import accounting, checks, training
from jaxfair.pate._attribute import Protection
from jaxfair.pate._sf_release import Released, SfPateConfig, private_groups, private_labels
from jaxfair.pate._sf_votes import Ensemble
from jaxfair.types import AnchoredTrainer, Examples, Fit, Model, Params, PerExampleLoss, Trainer


class SfPate(NamedTuple):
  """A fair model that keeps group membership private.

  Attributes:
    params: the student.
    fit: how it was trained; computed from the release, so free.
    released: what it learnt from.
    protection: what the student, and all above, protect.
  """

  params: Params
  fit: Fit
  released: Released
  protection: Protection


def fair_student(
  model: Model,
  loss: PerExampleLoss,
  people: Examples,
  config: SfPateConfig,
  *,
  num_groups: int,
  key: jax.Array,
  teacher_model: Model | None = None,
  trainer: AnchoredTrainer = training.lagrangian,
  ensemble: Ensemble | None = None,
  rows: Any = None,
  folder: str | pathlib.Path | None = None,
  dataset_ledger: accounting.DatasetLedger | None = None,
) -> SfPate:
  """Trains a fair student on privately voted groups (SF_S-PATE).

  min (1/m) sum l(f(x), y) + lambda ||theta - theta*||^2
  subject to fairness with respect to a~(x) = argmax_a n_a(x) + N(0, sigma^2)

  Args:
    model: of the student.
    loss: `(logits, y) -> [n]` losses.
    people: public x and y, private group.
    config: `teacher` a `FitConfig`, `student` the fair trainer's config, with
      the notion in its `constraint`.
    num_groups: G.
    key: partition, teachers, noise and student; a study's. For a release pass
      a folder as well.
    teacher_model: of the teachers, with G outputs; needed unless an ensemble
      is passed.
    trainer: the fair trainer.
    ensemble: other teachers; see `estimators`.
    rows: a partition of your own; see `attribute.deal`.
    folder: where answers and ledger are kept; the noise is then the operating
      system's, and the result may be released.
    dataset_ledger: charges such a release to its data set as well.

  Returns:
    The student, with the protection to be told along with it.

  Privacy:
    (epsilon, delta)-DP for the group of one person. Features and labels are
    taken to be public, and so is who takes part.

  Reference:
    Tran et al. (2023), section 5.1.
  """
  key_votes, key_plain, key_student = _keys(key)
  released = private_groups(
    teacher_model,
    loss,
    people,
    config,
    num_groups=num_groups,
    key=key_votes,
    ensemble=ensemble,
    rows=rows,
    folder=folder,
    dataset_ledger=dataset_ledger,
  )
  anchor = plain_model(model, loss, people, config.plain, key=key_plain)
  fit = trainer(
    model, loss, released.examples, config.student, key=key_student, initial=anchor, anchor=anchor
  )
  return SfPate(fit.params, fit, released, released.protection)


def fair_teachers(
  model: Model,
  loss: PerExampleLoss,
  people: Examples,
  config: SfPateConfig,
  *,
  num_groups: int,
  num_classes: int,
  key: jax.Array,
  teacher_model: Model | None = None,
  trainer: Trainer = training.lagrangian,
  ensemble: Ensemble | None = None,
  rows: Any = None,
  folder: str | pathlib.Path | None = None,
  dataset_ledger: accounting.DatasetLedger | None = None,
) -> SfPate:
  """Trains a plain student on the votes of fair teachers (SF_T-PATE).

  min (1/m) sum l(f(x), y~) + lambda ||theta - theta*||^2
  where y~(x) = argmax_y n_y(x) + N(0, sigma^2)

  Args:
    model: of the student, and of the teachers by default.
    loss: `(logits, y) -> [n]` losses.
    people: public x, private group; labels are public unless lambda is 0.
    config: `teacher` the fair trainer's config, `student` a `FitConfig`.
    num_groups: G.
    num_classes: C.
    key: as in `fair_student`.
    teacher_model: of the teachers, with C outputs.
    trainer: the fair trainer of each teacher.
    ensemble: other fair teachers; see `estimators`.
    rows: as in `fair_student`.
    folder: likewise.
    dataset_ledger: likewise.

  Returns:
    The student, with the protection to be told along with it.

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
    ensemble=ensemble,
    rows=rows,
    folder=folder,
    dataset_ledger=dataset_ledger,
    labels_private=blind,
  )
  anchor = None
  if not blind:
    anchor = plain_model(model, loss, people, config.plain, key=key_plain)
  fit = training.fit(
    model, loss, released.examples, config.student, key=key_student, initial=anchor, anchor=anchor
  )
  return SfPate(fit.params, fit, released, released.protection)


def plain_model(
  model: Model,
  loss: PerExampleLoss,
  people: Examples,
  config: training.FitConfig,
  *,
  key: jax.Array,
) -> Params:
  """theta*: the model without groups.

  Privacy:
    It is given no groups at all, so it costs nothing.
  """
  nobody = np.zeros(people.size, np.int32)
  blind = people._replace(group=nobody)
  return training.fit(model, loss, blind, config, key=key).params


def _keys(key: jax.Array) -> jax.Array:
  checks.one_key("key", key)
  return jax.random.split(key, 3)
