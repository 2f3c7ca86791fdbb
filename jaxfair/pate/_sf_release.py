"""What SF-PATE releases: people with privately voted groups or labels.

Everything that is computed from a release is free: any fair trainer may follow, also your own.
"""

import dataclasses
import hashlib
import pathlib
import secrets
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from jaxfair import accounting, checks, training
from jaxfair._fields import several
from jaxfair.accounting import _randomized_response
from jaxfair.pate import _attribute
from jaxfair.pate._aggregation import NO_ANSWER, gnmax
from jaxfair.pate._answerer import Answerer
from jaxfair.pate._attribute import Protection
from jaxfair.pate._rules import GnMax
from jaxfair.pate._sf_votes import Ensemble, votes
from jaxfair.privacy import os_key, randomized_response
from jaxfair.types import ArrayLike, Examples, Key, Model, PerExampleLoss, Trainer

_TEACHER = training.FitConfig(steps=100, batch_size=32)
_STUDENT = training.LagrangianConfig(batch_size=None)
_PLAIN = training.FitConfig()
_GROUPS = ("which group each one of the people belongs to",)
_NEVER = ("that a person is among the people", "a group that anybody can guess from the features")
_CHECKED = (
  "that the people were not refused, which is decided by looking at groups",
  "teachers and their votes: they must not be published",
)


@dataclasses.dataclass(frozen=True)
class SfPateConfig:
  """Settings of SF-PATE: what is released, and at what privacy cost.

  Attributes:
    epsilon: epsilon of the release, for one person's group. Several, for a study, give
      one release each, from the same votes with fresh noise.
    delta: delta of each release.
    num_teachers: K.
    queries: number of people the student learns from, drawn from the training people.
    teacher: settings of a teacher: `FitConfig`, or `LagrangianConfig` for fair teachers.
    student: settings of the student; its `proximity` is twice the paper's lambda.
    plain: settings of theta*, the model without groups.
  """

  epsilon: float | tuple[float, ...] = 1.0
  delta: float = 1e-5
  num_teachers: int = 150
  queries: int = 200
  teacher: Any = _TEACHER
  student: Any = _STUDENT
  plain: training.FitConfig = _PLAIN

  @property
  def sigmas(self) -> tuple[float, ...]:
    """The noise on each vote count, for each epsilon."""
    return tuple(
      _attribute.vote_sigma(epsilon=one, delta=self.delta, queries=self.queries)
      for one in several(self.epsilon)
    )


class SfRelease(NamedTuple):
  """People with private labels; all that follows is post-processing.

  Attributes:
    examples: the queries: public x, and y or group by private vote, with a leading axis if the
      config has several epsilons.
    rows: which of the people they are.
    protection: what may be said of them, all epsilons together.
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
  key: Key,
  ensemble: Ensemble | None = None,
  rows: ArrayLike | None = None,
  folder: str | pathlib.Path | None = None,
  dataset_ledger: accounting.DatasetLedger | None = None,
) -> SfRelease:
  """Privately voted groups of some people, for any fair trainer.

      released = pate.private_groups(...)
      x, y, group = released.examples
      fairlearn_model.fit(x, y, sensitive_features=group)

  Privacy and arguments are those of `fair_student`, and these:

  Args:
    model: model of the teachers, with G outputs; needed unless an ensemble is passed.
    loss: loss of the teachers.
    people: public x and y, private group.
    config: `student` and `plain` are not used.
    num_groups: G.
    key: partition, teachers and noise.
    ensemble: other teachers; see `estimators`.
    rows: a partition of your own; see `attribute.deal`.
    folder: where answers and ledger are kept; the noise then comes from the operating system, and
      the result may be released.
    dataset_ledger: charges such a release to its data set as well.
  """
  asked = ask(
    "groups", model, loss, people, config, num_groups, num_groups, key, rows=rows, ensemble=ensemble
  )
  voted, guarantee = _answers(asked, config, "groups", folder, dataset_ledger)
  protection = Protection(
    guarantee,
    protected=_GROUPS,
    not_protected=("features and labels, which are taken to be public", *_NEVER, *_CHECKED),
    for_release=folder is not None,
  )
  return SfRelease(asked.queries._replace(group=voted), asked.rows, protection)


def private_labels(
  model: Model | None,
  loss: PerExampleLoss,
  people: Examples,
  config: SfPateConfig,
  *,
  num_groups: int,
  num_classes: int,
  key: Key,
  trainer: Trainer = training.lagrangian,
  ensemble: Ensemble | None = None,
  rows: ArrayLike | None = None,
  folder: str | pathlib.Path | None = None,
  dataset_ledger: accounting.DatasetLedger | None = None,
  labels_private: bool = False,
) -> SfRelease:
  """Labels that fair teachers voted for, for any student.

  Arguments and privacy as in `fair_teachers`; `labels_private` says that nothing else will be
  computed from the labels.
  """
  asked = ask(
    "labels",
    model,
    loss,
    people,
    config,
    num_groups,
    num_classes,
    key,
    rows=rows,
    trainer=trainer,
    ensemble=ensemble,
  )
  voted, guarantee = _answers(asked, config, "labels", folder, dataset_ledger)
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
  return SfRelease(examples, asked.rows, protection)


def randomized_groups(
  people: Examples,
  *,
  epsilon: float,
  num_groups: int,
  key: Key | None,
  dataset_ledger: accounting.DatasetLedger | None = None,
) -> SfRelease:
  """Everyone's group after randomized response, for any fair trainer (M).

  Args:
    people: public x and y, private group.
    epsilon: for the group of one person, with delta = 0.
    num_groups: G.
    key: for a study; used once. None draws a key from the operating system, and the reports may be
      released.
    dataset_ledger: charges such a release to its data set.

  Returns:
    All people with reported groups. Reports are right with probability e^epsilon / (e^epsilon + G -
    1), which is known: use `fairness.constraints.corrected` to correct for it.

  Privacy:
    epsilon-DP for the group of one person. No check depends on who is in which group, since its
    outcome would reveal something about the groups. Unlike in `private_groups`, a feature that
    reveals the group is therefore not detected, and then nobody is protected.

  Reference:
    Mozannar, Ohannessian & Srebro (2020).
  """
  checks.integer("num_groups", num_groups, low=2)
  checks.same_length(**people._asdict())
  checks.ids("people.group", people.group, num_groups)
  if dataset_ledger is not None and key is None:
    dataset_ledger.charge(
      accounting.RandomizedResponse(epsilon, num_groups),
      id=f"{secrets.token_hex(8)}: randomized groups",
      relation=accounting.Relation.ATTRIBUTE,
    )
  reports = randomized_response(
    people.group, epsilon=epsilon, num_categories=num_groups, key=os_key() if key is None else key
  )
  spent = _randomized_response.randomized_response_epsilon(
    epsilon=epsilon, categories=num_groups, count=1
  )
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
  return SfRelease(reported, everyone, protection)


class Asked(NamedTuple):
  """The teachers' votes on some of the people; not for release.

  Attributes:
    rows: which of the people the queries are.
    queries: these people.
    counts: [m, C] votes.
    key_noise: for the answers.
  """

  rows: np.ndarray
  queries: Examples
  counts: np.ndarray
  key_noise: jax.Array


def ask(
  what: Literal["groups", "labels"],
  model: Model | None,
  loss: PerExampleLoss,
  people: Examples,
  config: SfPateConfig,
  num_groups: int,
  num_outputs: int,
  key: Key,
  *,
  rows: ArrayLike | None = None,
  **options: Any,
) -> Asked:
  """Trains the teachers and counts their votes; `options` are those of `votes`."""
  key_parts, key_teachers, key_rows, key_noise = jax.random.split(key, 4)
  parts = _attribute.deal(
    people, config.num_teachers, num_groups=num_groups, key=key_parts, rows=rows
  )
  if what == "groups":
    parts = parts._replace(y=parts.group)
  asked = _attribute.draw_queries(people.size, config.queries, key=key_rows)
  queries = people.take(asked)
  counts = votes(
    model,
    loss,
    parts,
    queries.x,
    config.teacher,
    num_classes=num_outputs,
    key=key_teachers,
    **options,
  )
  return Asked(asked, queries, counts, key_noise)


def _answers(
  asked: Asked,
  config: SfPateConfig,
  what: str,
  folder: str | pathlib.Path | None,
  dataset_ledger: accounting.DatasetLedger | None,
) -> tuple[np.ndarray, accounting.PrivacyGuarantee]:
  """[m] private labels, or [E, m], and what they cost."""
  sigmas = config.sigmas
  guarantee = _attribute.vote_guarantee(sigma=sigmas, queries=config.queries, delta=config.delta)
  if folder is None:
    if not isinstance(config.epsilon, tuple):
      return np.asarray(gnmax(asked.counts, sigma=sigmas[0], key=asked.key_noise)), guarantee
    keys = jax.random.split(asked.key_noise, len(sigmas))
    voted = map(lambda sigma, key: gnmax(asked.counts, sigma=sigma, key=key), sigmas, keys)
    return np.stack([*voted]), guarantee
  checks.require(
    not isinstance(config.epsilon, tuple),
    f"epsilon={config.epsilon} has several values; a release in a folder has one",
  )
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
      budget=(several(config.epsilon)[0], config.delta),
      relation=accounting.Relation.ATTRIBUTE,
    )
  )
  # Only the same questions may be answered from the folder: the answers are in the order of the
  # queries, whose features are public.
  x = np.ascontiguousarray(asked.queries.x)
  about = f"{what} of {hashlib.sha256(x.tobytes()).hexdigest()[:16]}"
  with (
    ledger,
    Answerer(
      path,
      GnMax(sigmas[0]),
      ledger=ledger,
      dataset_ledger=dataset_ledger,
      about=about,
      batch_size=config.queries,
    ) as answerer,
  ):
    answers = answerer.answer(asked.counts, first=0)
    answerer.finish()
  checks.require(
    bool((answers.labels != NO_ANSWER).all()),
    f"{book} has no budget left for {config.queries} queries; use a new folder "
    "for a new release, and add up the two",
  )
  return answers.labels.astype(np.int32), answers.guarantee
