"""What SF-PATE releases: people with privately voted groups or labels.

Everything that is computed from a release is free, so any fair trainer may
follow: ours, fairlearn's, somebody's own.
"""

import dataclasses
import hashlib
import pathlib
import secrets
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxfair import accounting, checks, training
from jaxfair.pate import _attribute
from jaxfair.pate._aggregation import NO_ANSWER, gnmax
from jaxfair.pate._answerer import Answerer
from jaxfair.pate._attribute import Protection
from jaxfair.pate._rules import GnMax
from jaxfair.pate._sf_votes import Ensemble, group_votes, label_votes
from jaxfair.privacy import os_key, randomized_response
from jaxfair.types import Examples, Model, PerExampleLoss, Trainer

_TEACHER = training.FitConfig(steps=100, batch_size=32)
_STUDENT = training.LagrangianConfig(batch_size=None)
_PLAIN = training.FitConfig()
_GROUPS = ("which group each one of the people belongs to",)
_NEVER = ("that a person is among the people", "a group that anybody can guess from the features")
_CHECKED = (
  "that the people were not refused, which is decided by looking at groups",
  "teachers and their votes: they must not leave the house",
)


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
    return _attribute.vote_sigma(epsilon=self.epsilon, delta=self.delta, queries=self.queries)


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
  dataset_ledger: accounting.DatasetLedger | None = None,
) -> Released:
  """Privately voted groups of some people, for any fair trainer.

      released = pate.private_groups(...)
      x, y, group = released.examples
      fairlearn_model.fit(x, y, sensitive_features=group)

  Arguments and privacy as in `fair_student`; `model` is the teachers'.
  """
  asked = _ask(people, config, num_groups, key, rows)
  counts = group_votes(
    model,
    loss,
    asked.parts,
    asked.queries.x,
    config.teacher,
    num_groups=num_groups,
    key=asked.key_teachers,
    ensemble=ensemble,
  )
  voted, guarantee = _answers(counts, config, asked, "groups", folder, dataset_ledger)
  protection = Protection(
    guarantee,
    protected=_GROUPS,
    not_protected=("features and labels, which are taken to be public", *_NEVER, *_CHECKED),
    for_release=folder is not None,
  )
  examples = asked.queries._replace(group=voted)
  return Released(examples, asked.rows, protection)


def private_labels(
  model: Model | None,
  loss: PerExampleLoss,
  people: Examples,
  config: SfPateConfig,
  *,
  num_groups: int,
  num_classes: int,
  key: jax.Array,
  trainer: Trainer = training.lagrangian,
  ensemble: Ensemble | None = None,
  rows: Any = None,
  folder: str | pathlib.Path | None = None,
  dataset_ledger: accounting.DatasetLedger | None = None,
  labels_private: bool = False,
) -> Released:
  """Labels that fair teachers voted for, for any student.

  Arguments and privacy as in `fair_teachers`; `labels_private` says that
  nothing else will be computed from the labels.
  """
  asked = _ask(people, config, num_groups, key, rows)
  counts = label_votes(
    model,
    loss,
    asked.parts,
    asked.queries.x,
    config.teacher,
    num_classes=num_classes,
    key=asked.key_teachers,
    trainer=trainer,
    ensemble=ensemble,
  )
  voted, guarantee = _answers(counts, config, asked, "labels", folder, dataset_ledger)
  told = "labels, since the student stays close to a model fitted to them"
  protection = Protection(
    guarantee,
    protected=_GROUPS + (("their labels",) if labels_private else ()),
    not_protected=(
      "features, which are taken to be public",
      *(() if labels_private else (told,)),
      *_NEVER,
      *_CHECKED,
    ),
    for_release=folder is not None,
  )
  # The queries' own groups are private, and a plain student needs none.
  nobody = np.zeros(config.queries, np.int32)
  examples = Examples(asked.queries.x, voted, nobody)
  return Released(examples, asked.rows, protection)


def randomised_groups(
  people: Examples,
  *,
  epsilon: float,
  num_groups: int,
  key: jax.Array | None,
  dataset_ledger: accounting.DatasetLedger | None = None,
) -> Released:
  """Everybody's group through randomised response, for any fair trainer (M).

  Args:
    people: public x and y, private group.
    epsilon: for the group of one person, with delta = 0.
    num_groups: G.
    key: a study's, used once. None draws one from the operating system, and
      the reports may be released.
    dataset_ledger: charges such a release to its data set.

  Returns:
    All people with reported groups. Reports are right with probability
    e^epsilon / (e^epsilon + G - 1), which is known: a trainer that minds the
    difference uses `fairness.constraints.corrected`.

  Privacy:
    epsilon-DP for the group of one person. Nothing is refused by who is in
    which group, which would tell about it: a feature that gives the groups
    away is not looked for, unlike in `private_groups`, and protects nobody.

  Reference:
    Mozannar, Ohannessian & Srebro (2020).
  """
  checks.integer("num_groups", num_groups, low=2)
  checks.same_length(**people._asdict())
  checks.ids("people.group", people.group, num_groups)
  if dataset_ledger is not None and key is None:
    dataset_ledger.charge(
      accounting.RandomisedResponse(epsilon, num_groups),
      id=f"{secrets.token_hex(8)}: randomised groups",
      relation=accounting.Relation.ATTRIBUTE,
    )
  reports = randomized_response(
    people.group, epsilon=epsilon, num_categories=num_groups, key=os_key() if key is None else key
  )
  spent = accounting.randomised_response_epsilon(epsilon=epsilon, categories=num_groups, count=1)
  protection = Protection(
    accounting.PrivacyGuarantee(
      spent, 0.0, accounting.Relation.ATTRIBUTE, "one person", "closed form"
    ),
    protected=_GROUPS,
    not_protected=("features and labels, which are taken to be public", *_NEVER),
    for_release=key is None,
  )
  everyone = np.arange(people.size)
  reported = people._replace(group=np.asarray(reports))
  return Released(reported, everyone, protection)


class _Asked(NamedTuple):
  parts: Examples  # [k, n, ...] disjoint, one per teacher
  rows: np.ndarray  # of the queries
  queries: Examples
  key_teachers: jax.Array
  key_noise: jax.Array


def _ask(
  people: Examples, config: SfPateConfig, num_groups: int, key: jax.Array, rows: Any
) -> _Asked:
  """Who teaches whom, and whom teachers are asked about."""
  key_parts, key_teachers, key_rows, key_noise = jax.random.split(key, 4)
  parts = _attribute.deal(
    people, config.num_teachers, num_groups=num_groups, key=key_parts, rows=rows
  )
  asked = _attribute.draw_queries(people.size, config.queries, key=key_rows)
  return _Asked(parts, asked, people.take(asked), key_teachers, key_noise)


def _answers(
  counts: np.ndarray,
  config: SfPateConfig,
  asked: _Asked,
  what: str,
  folder: str | pathlib.Path | None,
  dataset_ledger: accounting.DatasetLedger | None,
) -> tuple[np.ndarray, accounting.PrivacyGuarantee]:
  """[m] private labels, and what they cost."""
  sigma = config.sigma
  guarantee = _attribute.vote_guarantee(sigma=sigma, queries=config.queries, delta=config.delta)
  if folder is None:
    voted = gnmax(counts, sigma=sigma, key=asked.key_noise)
    return np.asarray(voted), guarantee
  path = pathlib.Path(folder)
  path.mkdir(parents=True, exist_ok=True)
  book = path / "ledger.jsonl"
  ledger = (
    accounting.Ledger.open(book)
    if book.exists()
    else accounting.Ledger.create(
      book,
      data="private attribute",
      unit="one person",
      budget=(config.epsilon, config.delta),
      relation=accounting.Relation.ATTRIBUTE,
    )
  )
  # Only the same questions may be answered from the folder: the answers are
  # in the order of the queries, whose features are public.
  x = np.ascontiguousarray(asked.queries.x)
  about = f"{what} of {hashlib.sha256(x.tobytes()).hexdigest()[:16]}"
  rule = GnMax(sigma)
  with (
    ledger,
    Answerer(
      path,
      rule,
      ledger=ledger,
      dataset_ledger=dataset_ledger,
      about=about,
      batch_size=config.queries,
    ) as answerer,
  ):
    answers = answerer.answer(counts, first=0)
    answerer.finish()
  checks.require(
    bool((answers.labels != NO_ANSWER).all()),
    f"{book} has no budget left for {config.queries} queries; use a new folder "
    "for a new release, and add up the two",
  )
  return answers.labels.astype(np.int32), answers.guarantee
