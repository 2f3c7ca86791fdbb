"""Settings of the methods in which teachers vote."""

from typing import Annotated, Any, Literal

from jaxfair import checks
from jaxfair._fields import Count, NonNegative, Positive, Share, Within
from jaxfair.fairness._known_labels import PARITY, NotionName
from jaxfair.methods._answer_plans import refuse_unplanned
from jaxfair.methods._method import NetworkSettings, refuse_margin


class TeacherSettings(NetworkSettings):
  """Settings of an ensemble and its student.

  Attributes:
    num_teachers: k; None chooses it from the number of people.
    queries: public people that are asked about, the first ones; None asks about as many as the
      budget answers well.
    teacher_steps: of each teacher.
    student_steps: of the student.
    batch_size: of both; everybody, where there are no more.
    learning_rate: learning rate of Adam, for both.
    weight_decay: of both.
    row_norm: radius of the ball that features are projected into, for teachers, student and
      predictions; 0 leaves them as they are.
    sanitized_epsilon: epsilon at the votes that are cast, to aim for. A figure with noise is then
      published beside the budget, which holds for any votes and pays for the figure, and so many
      queries are asked that the figure is expected to be at most this. None publishes no figure.
    consensus: mean share of teachers that agree, for that plan; guess it from public people or from
      another data set.

  Of what is None, batches, rate, decay and row norm follow from the network
  (docs/private_training.md).
  """

  num_teachers: Count | None = None
  queries: Count | None = None
  teacher_steps: Count = 100
  student_steps: Count = 300
  batch_size: Count | None = None
  learning_rate: Positive | None = None
  weight_decay: NonNegative | None = None
  row_norm: NonNegative | None = None
  sanitized_epsilon: Positive | None = None
  consensus: Share = 0.9


class ConfidentSettings(TeacherSettings):
  """Settings of answers that the teachers agree on.

  Attributes:
    threshold: T, as a share of the teachers.
    test_ratio: noise of the test over noise of the answer.
    answers: answers that the budget must pay for, besides a test of every
      query; None for as many as there are queries. Fewer means less noise on
      each, and queries are left unasked once the budget is spent.
    sigma_answer: noise of the answer, in votes; None calibrates it as above.
      The budget limits the answers in any case.
  """

  threshold: Share = 0.5
  test_ratio: Positive = 3.0
  answers: Count | None = None
  sigma_answer: Positive | None = None

  def check(self) -> None:
    """Raises for a figure of answers that are not all paid for beforehand."""
    super().check()
    checks.require(
      self.sanitized_epsilon is None or (self.answers is None and self.sigma_answer is None),
      "sanitized_epsilon plans a test and an answer for every query; leave answers and "
      "sigma_answer out",
    )


class FairSettings(ConfidentSettings):
  """Settings of answers within a margin between groups.

  Attributes:
    max_gap: gamma, the margin, for labels and for predictions.
    min_count: M, answers of a group before it is judged.
    disparity: which difference between groups; see `fairness.CounterRule`.
    guard: "table" keeps every disparity below the margin; "own" is the
      paper's test of the answered one alone.
    notion: notion of fairness, for labels. All but demographic parity read the labels of the public
      people, and keep no margin for predictions, whose true labels are not known.
    plan_answers: whether the shares of classes among shown predictions are planned on public
      people, so that the margin lets more be shown; see docs/fairpate.md.
  """

  max_gap: NonNegative = 0.1
  min_count: Annotated[int, Within(0)] = 50
  disparity: Literal["rest", "pairwise", "overall"] = "rest"
  guard: Literal["table", "own"] = "table"
  notion: NotionName = PARITY
  plan_answers: bool = False

  def check(self) -> None:
    """Raises for a plan without a margin for predictions."""
    super().check()
    refuse_unplanned(self)


class FairPateSettings(FairSettings):
  """Settings of FairPATE.

  Attributes:
    choice: "any" is the paper's argmax over all classes; "allowed" takes it
      over those that keep the margin.
    choose: which public people are asked about: the "first" ones, or in later rounds those whose
      answer is expected to keep the margin and about whom a student of the answers so far is least
      sure ("admissible").
    rounds: number of rounds of "admissible" that make up the planned queries; the first asks about
      the first people. What the budget has left is spent in further rounds of that size.
  """

  choice: Literal["any", "allowed"] = "any"
  choose: Literal["first", "admissible"] = "first"
  rounds: Count = 4

  def check(self) -> None:
    """Raises for a figure of answers that are chosen, or are not the argmax over all classes."""
    super().check()
    refuse_chosen(self)
    checks.require(
      self.sanitized_epsilon is None or self.choice == "any",
      "sanitized_epsilon bounds the argmax over all classes, and choice='allowed' takes it over "
      "some; use choice='any', or leave sanitized_epsilon out",
    )


def refuse_chosen(settings: Any) -> None:
  """Raises for a figure of queries that are not known beforehand."""
  checks.require(
    settings.choose == "first" or settings.sanitized_epsilon is None,
    "sanitized_epsilon is planned for queries that are known beforehand; use choose='first', or "
    "leave sanitized_epsilon out",
  )


class PenaltySettings(ConfidentSettings):
  """Settings of a student with a penalty on its disparity.

  Attributes:
    lam: weight of the disparity on the public people.
    sample: public people drawn for each step; None uses all.
    disparity: which difference between groups; see `fairness`.
    max_gap: margin that predictions are shown by; None shows all.
    min_count: people of a group before the margin is kept.
    notion: of fairness, in the penalty. All but demographic parity read the labels of the public
      people, and have no margin for predictions, whose true labels are not known.
    plan_answers: whether the shares of classes among shown predictions are planned on public
      people, so that the margin lets more be shown; see docs/fairpate.md.
  """

  lam: NonNegative = 1.0
  sample: Count | None = None
  disparity: Literal["rest", "pairwise", "overall"] = "rest"
  max_gap: NonNegative | None = None
  min_count: Annotated[int, Within(0)] = 50
  notion: NotionName = PARITY
  plan_answers: bool = False

  def check(self) -> None:
    """Raises for a margin that cannot be kept."""
    super().check()
    refuse_margin(self)
    refuse_unplanned(self)
