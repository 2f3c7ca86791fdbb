"""FairPATE's query phase: confident answers, given only where that is fair.

One teacher moves one vote. The counters are functions of released labels, so
judging by them is free; what was computed from votes is charged all the same,
whether or not its result was released.
"""

import enum
import functools
import math
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks
from jaxfair.accounting import _zcdp
from jaxfair.fairness._counter import CounterRule, Guard, is_class
from jaxfair.fairness._counter_sequence import allowed_answers, count_answer, empty_counters
from jaxfair.fairness._disparity import DisparityKind
from jaxfair.fairness._known_labels import PARITY, NotionName, known_labels
from jaxfair.pate import _aggregation
from jaxfair.pate._aggregation import NO_ANSWER
from jaxfair.types import ArrayLike, GroupsLike, Key, LabelsLike, Number, PyTree, VotesLike

Choice: TypeAlias = Literal["any", "allowed"]
CHOICES: tuple[Choice, ...] = ("any", "allowed")


class Outcome(enum.IntEnum):
  """What happened to a query."""

  ANSWERED = 0
  REFUSED_FREE = 1  # no class is allowed: refused before looking at votes
  NOT_CONFIDENT = 2  # the threshold test failed
  UNFAIR = 3  # the noisy winner is not allowed
  NOT_ASKED = 4  # the budget was spent, or the query is not in the order


class FairAnswers(NamedTuple):
  """What was released about the queries, and what it took.

  Attributes:
    labels: [n] class ids, `NO_ANSWER` where there is none.
    outcome: [n] int32 `Outcome`.
    counters: [G, C] answers by group and class, m(z, k); of another notion than demographic parity
      [S, G, K], by true class (or one for all), group and category: the class that was given, or
      whether it was wrong (0) or right (1).
    tested: [n] whether the votes were compared with the threshold.
    chosen: [n] whether the noisy argmax was computed. Both are charged, and
      both are functions of what is released.
    sigma_threshold: standard deviation of the test's noise, so that it is not typed twice.
    sigma_answer: standard deviation of the answer's noise.
    max_rho: the budget that was fixed beforehand.
  """

  labels: jax.Array
  outcome: jax.Array
  counters: jax.Array
  tested: jax.Array
  chosen: jax.Array
  sigma_threshold: Any = None
  sigma_answer: Any = None
  max_rho: Any = math.inf


def fair_gnmax(
  counts: VotesLike,
  groups: GroupsLike,
  *,
  num_groups: int,
  threshold: Number,
  sigma_threshold: Number,
  sigma_answer: Number,
  max_gap: Number,
  min_count: Number,
  disparity: DisparityKind = "rest",
  key: Key,
  guard: Guard = "table",
  choice: Choice = "any",
  max_rho: Number = math.inf,
  continuous: bool = False,
  notion: NotionName = PARITY,
  truth: LabelsLike | None = None,
  order: ArrayLike | None = None,
) -> FairAnswers:
  """Answers where the teachers agree and the disparity stays within the margin (FairPATE).

  allowed   = classes that keep every disparity below max_gap
  confident = max_c n_c + N(0, sigma_threshold^2) >= threshold
  label     = argmax_c n_c + N(0, sigma_answer^2)   with fresh noise

  Queries are taken in order. One for which no class is allowed is refused
  before any vote is read; one whose label is not allowed is refused
  after.

  Args:
    counts: [n, C] votes per class.
    groups: [n] public group ids of the queries.
    num_groups: G.
    threshold: T, in votes.
    sigma_threshold: sigma1, of the test's noise.
    sigma_answer: sigma2, of the answer's noise.
    max_gap: gamma.
    min_count: M, answers of a group before it can be refused. Below
      (C - 1) / (C gamma) a group may have no allowed class left.
    disparity: what is kept below gamma; see `fairness.CounterRule`.
    key: used once.
    guard: "table" keeps all disparities below gamma; "own" is the paper's
      test of the answered one alone.
    choice: "any" is the paper's argmax over all classes; "allowed" takes it
      over the allowed ones, so that no answer is paid for and then refused.
      A single allowed class is the label, at the cost of the test alone.
    max_rho: stop before the zCDP of the charges could exceed this; see
      `accounting.zcdp_budget`.
    continuous: real instead of discrete Gaussian noise; then every number may
      be traced and mapped over.
    notion: notion of fairness; see `fairness.CounterRule`.
    truth: [n] **public** true class ids of the queries, for all notions but demographic parity.
    order: [q] rows in the order in which they are asked, each at most once; all rows as they are by
      default. Rows that are left out are not asked. Each row has noise of its own from the key, so
      the answers to the first rows of an order do not depend on the later ones, and an order may be
      continued by what was answered.

  Returns:
    One row for each query, in the order of `counts`.

  Privacy:
    A test is 1 / (2 sigma_threshold^2)-zCDP, an argmax 1 / sigma_answer^2,
    whether its label is given or refused. The paper charges nothing for
    unfair ones, which is not sound: a refusal reveals the argmax.
    The number of both depends on the votes, so `fair_events` charges
    their maximum: `max_rho`, which is a privacy filter, or both for
    every query if that is less. Every notion judges by released labels, public groups and public
    true labels, so none of them changes what a query costs.

  Reference:
    Learning to Walk Impartially on the Pareto Frontier of Fairness, Privacy,
    and Utility, Algorithm 1.
  """
  rule = CounterRule(max_gap, min_count, disparity, guard, notion)
  rule.check()
  checks.one_of("choice", choice, CHOICES)
  table = _aggregation.as_counts(counts)
  checks.integer("num_groups", num_groups, low=1)
  checks.same_length(counts=table, groups=groups)
  checks.ids("groups", groups, num_groups)
  truth = known_labels(truth, notion, size=len(table), num_classes=table.shape[1])
  draws = _aggregation.confident_draws(
    table,
    threshold=threshold,
    sigma_threshold=sigma_threshold,
    sigma_answer=sigma_answer,
    key=key,
    continuous=continuous,
  )
  budget = QueryBudget.of(sigma_threshold, sigma_answer, max_rho)
  feed = Feed(
    jnp.asarray(groups, jnp.int32),
    draws.confident,
    draws.labels() if choice == "any" else draws.ranks(),
    None if truth is None else jnp.asarray(truth, jnp.int32),
  )
  if order is not None:
    rows = _distinct_rows(order, len(table))
    feed = jax.tree.map(lambda leaf: leaf[rows], feed)
  found = answer_in_order(feed, rule, budget, num_groups, table.shape[1])
  if order is not None:
    found = _by_query(found, rows, len(table))
  return found._replace(sigma_threshold=sigma_threshold, sigma_answer=sigma_answer, max_rho=max_rho)


def fair_events(answers: FairAnswers) -> tuple[accounting.Event, ...]:
  """The event to charge for these answers; it does not depend on what was answered.

  Args:
    answers: of one call of `fair_gnmax`, which carry their noise and budget.

  Returns:
    Events for a ledger or `accounting.composed_guarantee`: the budget, or a
    test and an argmax for every query where that is less.

  Privacy:
    The number of tests and argmaxes depends on the votes, so a charge
    for those is not a guarantee. Along every sequence of answers they add up to at most
    `max_rho`, and stopping depends on released answers alone: together they
    are max_rho-zCDP.

  Reference:
    Feldman & Zrnic (2021), Theorem 3.1: Renyi filters.
  """
  test, answer = _noise_rho(answers)
  rho = min(float(answers.max_rho), answers.outcome.shape[0] * (test + answer))
  return (accounting.ZCdp(rho),) if rho else ()


def papers_unsound_events(answers: FairAnswers) -> tuple[accounting.Event, ...]:
  """The paper's charges, which are unsound: nothing for labels that were computed and refused.

  To reproduce its figures and to show how far they are off. No guarantee: a
  refusal tells that the noisy winner was among the classes not allowed, and
  which these are is public. Arguments as in `fair_events`.
  """
  test, answer = _noise_rho(answers)
  tests = int(jnp.sum(answers.tested))
  labels = int(jnp.sum(answers.outcome == Outcome.ANSWERED))
  return (accounting.ZCdp(tests * test + labels * answer),)


def _distinct_rows(order: ArrayLike, size: int) -> np.ndarray:
  """[q] the rows of an order, each once."""
  checks.require(checks.concrete(order), "order is traced; pass the rows as NumPy integers")
  rows = np.asarray(order, np.int64)
  checks.require(
    rows.ndim == 1 and len(np.unique(rows)) == len(rows),
    "order must be a list of different rows: a query is answered once",
  )
  checks.ids("order", rows, size)
  return rows


def _by_query(found: FairAnswers, rows: np.ndarray, size: int) -> FairAnswers:
  """Answers in the order of all queries; those who were left out of an order are not asked."""

  def placed(leaf: jax.Array, missing: Any) -> jax.Array:
    return jnp.full(size, missing, leaf.dtype).at[rows].set(leaf)

  return found._replace(
    labels=placed(found.labels, NO_ANSWER),
    outcome=placed(found.outcome, Outcome.NOT_ASKED),
    tested=placed(found.tested, False),
    chosen=placed(found.chosen, False),
  )


def _noise_rho(answers: FairAnswers) -> tuple[float, float]:
  """zCDP of one test and of one argmax."""
  checks.require(
    answers.sigma_answer is not None and jnp.ndim(answers.outcome) == 1,
    "answers must be those of one call of fair_gnmax; of many, take one setting and seed at a time",
  )
  test = _zcdp.discrete_gaussian_rho(sigma=float(answers.sigma_threshold))
  answer = _zcdp.discrete_gaussian_rho(sigma=float(answers.sigma_answer), sensitivity=math.sqrt(2))
  return test, answer


class QueryBudget(NamedTuple):
  """zCDP of a test and of an answer, and of all of them together."""

  test: Any
  answer: Any
  total: Any

  @classmethod
  def of(cls, sigma_threshold: Number, sigma_answer: Number, max_rho: Number) -> "QueryBudget":
    """From the noise; the total a little lower, for rounding to float32."""
    checks.require(
      not checks.concrete(max_rho) or bool(np.all(np.asarray(max_rho) >= 0)),
      f"max_rho={max_rho} must be 0 or above; see accounting.zcdp_budget",
    )
    test, answer = (jnp.asarray(sigma, jnp.float32) for sigma in (sigma_threshold, sigma_answer))
    total = jnp.asarray(max_rho, jnp.float32) * (1 - 1e-6)
    return cls(0.5 / jnp.square(test), 1 / jnp.square(answer), total)


class Feed(NamedTuple):
  """The inputs of one step; [n, ...], mapped over the remaining axes.

  Attributes:
    group: group of the query.
    confident: whether its test passes.
    winner: its noisy winner, or [n, C, ...] the ranks of the classes.
    truth: [n] its public true label; None for demographic parity.
  """

  group: Any
  confident: Any
  winner: Any
  truth: Any = None


@functools.partial(jax.jit, static_argnames=("num_groups", "num_classes"))
def answer_in_order(
  feed: Feed, rule: CounterRule, budget: QueryBudget, num_groups: int, num_classes: int
) -> FairAnswers:
  """Takes the queries one after the other, as one scan.

  Numbers of rule and budget may have the axes that lie behind the queries.
  """
  lanes = feed.confident.shape[1:]
  counters = empty_counters(num_groups, num_classes, rule.notion, lanes)
  nothing = jnp.zeros(lanes, jnp.int32)

  def step(carry: PyTree, one: Feed) -> tuple[Any, Any]:
    counters, tests, choices = carry
    allowed = allowed_answers(counters, one.group, one.truth, rule, num_classes)
    affordable = (tests + 1) * budget.test + (choices + 1) * budget.answer
    is_open = affordable <= budget.total
    tested = is_open & jnp.any(allowed, axis=0)
    winner, free = _winner(one.winner, allowed)
    passed = tested & one.confident
    chosen = passed & ~free
    fair = jnp.any(allowed & is_class(winner, num_classes), axis=0)
    given = passed & fair
    outcome = jnp.select(
      [~is_open, ~tested, ~passed, ~given],
      [Outcome.NOT_ASKED, Outcome.REFUSED_FREE, Outcome.NOT_CONFIDENT, Outcome.UNFAIR],
      Outcome.ANSWERED,
    ).astype(jnp.int8)
    label = jnp.where(given, winner, NO_ANSWER)
    counters = count_answer(counters, one.group, one.truth, winner, given, rule, num_classes)
    return (counters, tests + tested, choices + chosen), (label, outcome, tested, chosen)

  (counters, _, _), (labels, outcome, tested, chosen) = jax.lax.scan(
    step, (counters, nothing, nothing), feed
  )
  return FairAnswers(labels, outcome, counters, tested, chosen)


def _winner(winner: jax.Array, allowed: jax.Array) -> tuple[jax.Array, jax.Array]:
  """The label in question, and whether it was found without the votes."""
  if winner.ndim < allowed.ndim:  # of all classes
    return winner, jnp.zeros(winner.shape, bool)
  ranks = jnp.where(allowed, winner, allowed.shape[0])
  best = jnp.argmin(ranks, axis=0).astype(jnp.int32)
  return best, jnp.sum(allowed, axis=0) == 1
