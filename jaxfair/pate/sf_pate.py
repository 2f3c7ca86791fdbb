"""SF-PATE: fair models from private group attributes.

Fair student (SF_S): teachers predict the group; their noisy votes stand for
the groups of some people, on whom a fair student is trained. Fair teachers
(SF_T): each teacher is trained fair on its own part; their noisy votes on the
class label those people for a plain student. Either student stays close to
the best model that knows no groups, theta*, which costs nothing.

What protects is the vote. Any fair trainer can stand in the place of
`training.lagrangian`, and any ensemble in that of the teachers.
"""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxfair import accounting, checks, training
from jaxfair.pate import attribute
from jaxfair.pate.aggregation import NO_ANSWER, gnmax
from jaxfair.pate.answerer import Answerer
from jaxfair.pate.attribute import Protection
from jaxfair.pate.rules import GnMax
from jaxfair.pate.sf_votes import Ensemble, group_votes, label_votes
from jaxfair.privacy import randomised_response
from jaxfair.types import Examples, Fit, Model, Params, PerExampleLoss

_TEACHER = training.FitConfig(steps=100, batch_size=32)
_STUDENT = training.LagrangianConfig(batch_size=None)
_PLAIN = training.FitConfig()


@dataclasses.dataclass(frozen=True)
class SfPateConfig:
  """What is released, and at which price.

  Attributes:
    epsilon: of the release, for one person's group.
    delta: likewise.
    num_teachers: K.
    queries: people the student learns from, drawn from the training people.
    teacher: settings of a teacher: `FitConfig` for a fair student's,
      `LagrangianConfig` for fair teachers.
    student: settings of the student, the other way round; its `proximity` is
      twice the paper's lambda.
    plain: settings of theta*, the model without groups.
  """

  epsilon: float = 1.0
  delta: float = 1e-5
  num_teachers: int = 150
  queries: int = 200
  teacher: Any = _TEACHER
  student: Any = _STUDENT
  plain: training.FitConfig = _PLAIN

  @property
  def sigma(self) -> float:
    """The noise on each vote count."""
    return attribute.vote_sigma(
      epsilon=self.epsilon, delta=self.delta, queries=self.queries
    )


class Released(NamedTuple):
  """People with private labels; all that follows is post-processing.

  Attributes:
    examples: the queries: public x, and y or group by private vote.
    rows: which of the people they are.
    protection: what may be said of them.
  """

  examples: Examples
  rows: np.ndarray
  protection: Protection


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
  trainer: Callable[..., Fit] = training.lagrangian,
  ensemble: Ensemble | None = None,
  rows: Any = None,
  folder: str | pathlib.Path | None = None,
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
    trainer: the fair trainer: any function with `training.lagrangian`'s
      signature.
    ensemble: other teachers; see `estimators`.
    rows: a partition of your own; see `attribute.deal`.
    folder: where answers and ledger are kept; the noise is then the operating
      system's, and the result may be released.

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
    teacher_model, loss, people, config, num_groups=num_groups, key=key_votes,
    ensemble=ensemble, rows=rows, folder=folder,
  )  # fmt: skip
  anchor = plain_model(model, loss, people, config.plain, key=key_plain)
  fit = trainer(
    model, loss, released.examples, config.student, key=key_student,
    initial=anchor, anchor=anchor,
  )  # fmt: skip
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
  trainer: Callable[..., Fit] = training.lagrangian,
  ensemble: Ensemble | None = None,
  rows: Any = None,
  folder: str | pathlib.Path | None = None,
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
    teacher_model or model, loss, people, config, num_groups=num_groups,
    num_classes=num_classes, key=key_votes, trainer=trainer, ensemble=ensemble,
    rows=rows, folder=folder, labels_private=blind,
  )  # fmt: skip
  anchor = None
  if not blind:
    anchor = plain_model(model, loss, people, config.plain, key=key_plain)
  fit = training.fit(
    model, loss, released.examples, config.student, key=key_student,
    initial=anchor, anchor=anchor,
  )  # fmt: skip
  return SfPate(fit.params, fit, released, released.protection)


def private_groups(
  model: Model | None,
  loss: PerExampleLoss,
  people: Examples,
  config: SfPateConfig,
  *,
  num_groups: int,
  key: jax.Array,
  ensemble: Ensemble | None = None,
  rows: Any = None,
  folder: str | pathlib.Path | None = None,
) -> Released:
  """Privately voted groups of some people, for any fair trainer.

      released = pate.private_groups(...)
      x, y, group = released.examples
      fairlearn_model.fit(x, y, sensitive_features=group)

  Arguments and privacy as in `fair_student`; `model` is the teachers'.
  """
  key_parts, key_teachers, key_rows, key_noise = jax.random.split(key, 4)
  parts = attribute.deal(
    people, config.num_teachers, num_groups=num_groups, key=key_parts, rows=rows
  )
  asked = attribute.draw_queries(people.size, config.queries, key=key_rows)
  queries = people.take(asked)
  counts = group_votes(
    model, loss, parts, queries.x, config.teacher, num_groups=num_groups,
    key=key_teachers, ensemble=ensemble,
  )  # fmt: skip
  voted, guarantee = _answers(counts, config, key_noise, folder)
  protection = Protection(
    guarantee,
    protected=("which group each one of the people belongs to",),
    not_protected=(
      "features and labels, which are taken to be public",
      "that a person is among the people",
      "a group that anybody can guess from the features",
      "teachers and their votes: they must not leave the house",
    ),
    for_release=folder is not None,
  )
  return Released(queries._replace(group=voted), asked, protection)


def private_labels(
  model: Model | None,
  loss: PerExampleLoss,
  people: Examples,
  config: SfPateConfig,
  *,
  num_groups: int,
  num_classes: int,
  key: jax.Array,
  trainer: Callable[..., Fit] = training.lagrangian,
  ensemble: Ensemble | None = None,
  rows: Any = None,
  folder: str | pathlib.Path | None = None,
  labels_private: bool = False,
) -> Released:
  """Labels that fair teachers voted for, for any student.

  Arguments and privacy as in `fair_teachers`; `labels_private` says that
  nothing else will be computed from the labels.
  """
  key_parts, key_teachers, key_rows, key_noise = jax.random.split(key, 4)
  parts = attribute.deal(
    people, config.num_teachers, num_groups=num_groups, key=key_parts, rows=rows
  )
  asked = attribute.draw_queries(people.size, config.queries, key=key_rows)
  queries = people.take(asked)
  counts = label_votes(
    model, loss, parts, queries.x, config.teacher, num_classes=num_classes,
    key=key_teachers, trainer=trainer, ensemble=ensemble,
  )  # fmt: skip
  voted, guarantee = _answers(counts, config, key_noise, folder)
  told = "labels, since the student stays close to a model fitted to them"
  protection = Protection(
    guarantee,
    protected=("which group each one of the people belongs to",)
    + (("their labels",) if labels_private else ()),
    not_protected=(
      "features, which are taken to be public",
      *(() if labels_private else (told,)),
      "that a person is among the people",
      "a group that anybody can guess from the features",
      "teachers and their votes: they must not leave the house",
    ),
    for_release=folder is not None,
  )
  # The queries' own groups are private, and a plain student needs none.
  nobody = np.zeros(len(asked), np.int32)
  return Released(Examples(queries.x, voted, nobody), asked, protection)


def randomised_groups(
  people: Examples, *, epsilon: float, num_groups: int, key: jax.Array
) -> Released:
  """Everybody's group through randomised response, for any fair trainer (M).

  Args:
    people: public x and y, private group.
    epsilon: for the group of one person, with delta = 0.
    num_groups: G.
    key: used once; a study's.

  Returns:
    All people with reported groups. Reports are right with probability
    e^epsilon / (e^epsilon + G - 1), which is known: a trainer that minds the
    difference uses `fairness.constraints.corrected`.

  Reference:
    Mozannar, Ohannessian & Srebro (2020).
  """
  attribute.check_people(people, num_groups)
  reports = randomised_response(
    people.group, epsilon=epsilon, num_categories=num_groups, key=key
  )
  spent = accounting.randomised_response_epsilon(
    epsilon=epsilon, categories=num_groups, count=1
  )
  protection = Protection(
    accounting.PrivacyGuarantee(
      spent, 0.0, accounting.Relation.ATTRIBUTE, "one person", "closed form"
    ),
    protected=("which group each one of the people belongs to",),
    not_protected=(
      "features and labels, which are taken to be public",
      "that a person is among the people",
      "a group that anybody can guess from the features",
    ),
  )
  everyone = np.arange(people.size)
  reported = people._replace(group=np.asarray(reports))
  return Released(reported, everyone, protection)


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


def _answers(
  counts: np.ndarray,
  config: SfPateConfig,
  key: jax.Array,
  folder: str | pathlib.Path | None,
) -> tuple[np.ndarray, accounting.PrivacyGuarantee]:
  """[m] private labels, and what they cost."""
  sigma = config.sigma
  guarantee = attribute.vote_guarantee(
    sigma=sigma, queries=config.queries, delta=config.delta
  )
  if folder is None:
    return np.asarray(gnmax(counts, sigma=sigma, key=key)), guarantee
  path = pathlib.Path(folder)
  path.mkdir(parents=True, exist_ok=True)
  book = path / "ledger.jsonl"
  ledger = (
    accounting.Ledger.open(book)
    if book.exists()
    else accounting.Ledger.create(
      book, data="private attribute", unit="one person",
      budget=(config.epsilon, config.delta),
      relation=accounting.Relation.ATTRIBUTE,
    )
  )  # fmt: skip
  with ledger, Answerer(path, GnMax(sigma), ledger=ledger) as answerer:
    answers = answerer.answer(counts, first=0)
  checks.require(
    bool((answers.labels != NO_ANSWER).all()),
    f"{book} has no budget left for {config.queries} queries; use a new folder "
    "for a new release, and add up the two",
  )
  return answers.labels.astype(np.int32), answers.guarantee


def _keys(key: jax.Array) -> jax.Array:
  checks.one_key("key", key)
  return jax.random.split(key, 3)
