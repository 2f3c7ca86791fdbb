"""Abstention at inference: a deployed model that stays within the margin."""

import json
import os
import pathlib
import threading
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.fairness import _answer_plan
from jaxfair.fairness._counter import REFUSED, CounterRule
from jaxfair.fairness._counter_sequence import admit_in_order, check_counters
from jaxfair.fairness._disparity import demographic_disparity
from jaxfair.fairness._known_labels import PARITY
from jaxfair.types import ArrayLike

FORMAT = "jaxfair-abstainer-1"
PLANNED = "jaxfair-abstainer-2"  # with a plan


class Abstainer:
  """Shows a model's predictions, or abstains where that is needed to keep parity.

      gate = fairness.Abstainer(
        fairness.CounterRule(max_gap=0.05, min_count=50),
        num_groups=2, num_classes=2,
      )
      shown = gate.answer(predicted, group)   # -1 where it abstains
      gate.save("gate.json")                  # and after a restart:
      gate = fairness.Abstainer.restore("gate.json")

  Its state is the number of answers by group and class. A call judges
  people in order, as if they came one by one.

  With `targets`, a plan of the classes' shares in every group's answers, a
  person whom the plan leaves out is not answered, and the rule judges the
  others: the margin holds as without a plan, and a good one lets more people
  be answered.

  Save it before its answers are shown: a restored gate does not know what was
  shown after the last save, and the margin no longer holds for all answers.

  Threads may share a gate: a lock makes each call atomic, and `save` writes one
  state at a time. Processes may not: each would keep counters of its own, and
  the margin would hold for each of them, not for all together. Let one process
  own the gate.

  Privacy:
    Judging reads predictions and public groups of those who ask, so it has no
    privacy cost for the training data. The counters reveal something about those who asked.

  Reference:
    Learning to Walk Impartially on the Pareto Frontier of Fairness, Privacy,
    and Utility, Algorithm 2 (IDP3).
  """

  def __init__(
    self,
    rule: CounterRule,
    *,
    num_groups: int,
    num_classes: int,
    counters: ArrayLike | None = None,
    asked: ArrayLike | None = None,
    targets: ArrayLike | None = None,
    offered: ArrayLike | None = None,
  ):
    """Begins, or continues with the counters of an earlier gate.

    Args:
      rule: margin, cold start, disparity and guard. Its notion is demographic parity: the others
        read true labels, which are not known when a prediction is shown.
      num_groups: G.
      num_classes: C.
      counters: [G, C] answers so far; none by default.
      asked: [G] people who asked so far; those answered by default.
      targets: [C] shares of the classes that the answers to every group aim at; without them all
        predictions are offered to the rule.
      offered: [G, C] predictions offered so far, where there are targets; none by default.
    """
    checks.require(
      isinstance(rule, CounterRule),
      f"rule={rule!r} is not a rule; pass CounterRule(max_gap=0.05, min_count=50)",
    )
    rule.check()
    checks.require(
      rule.notion == PARITY,
      f"notion={rule.notion!r} reads true labels, which nobody knows when a prediction is "
      f"shown; use notion={PARITY!r} here, or train for the other with a penalty",
    )
    checks.integer("num_groups", num_groups, low=1)
    checks.integer("num_classes", num_classes, low=1)
    if counters is None:
      counters = np.zeros((num_groups, num_classes), np.int64)
    check_counters(counters, (num_groups, num_classes))
    self._counters = np.array(counters, np.int64)
    answered = self._counters.sum(axis=1)
    self._asked = np.array(answered if asked is None else asked, np.int64)
    checks.require(
      self._asked.shape == (num_groups,) and bool(np.all(self._asked >= answered)),
      "asked must hold one number per group, none below what was answered",
    )
    self.rule = rule
    self.targets = None if targets is None else _checked(targets, num_classes)
    self._offered = np.array(self._counters if offered is None else offered, np.int64)
    checks.require(
      self._offered.shape == self._counters.shape and bool(np.all(self._offered >= self._counters)),
      "offered must hold one number per group and class, none below what was answered",
    )
    self._lock = threading.Lock()  # of the state
    self._saving = threading.Lock()  # of the file: one state after the other

  def answer(self, labels: ArrayLike, groups: ArrayLike) -> np.ndarray:
    """The predictions that may be shown, -1 where the gate abstains.

    Args:
      labels: one predicted class id, or [n] of them in order.
      groups: the person's group id, or [n].

    Returns:
      As many class ids, or -1.
    """
    alone = np.ndim(labels) == 0
    labels, groups = np.atleast_1d(labels), np.atleast_1d(groups)
    num_groups, num_classes = self._counters.shape
    checks.same_length(labels=labels, groups=groups)
    checks.require(
      labels.ndim == groups.ndim == 1,
      f"labels has shape {labels.shape} and groups {groups.shape}; pass one "
      "class id and one group id per person, not logits",
    )
    if not labels.size:
      return np.zeros(0, np.int32)
    checks.ids("labels", labels, num_classes)
    checks.ids("groups", groups, num_groups)
    # Calls of any size share a few programs: the rest is filled up.
    size = 1 << max(0, int(labels.size - 1).bit_length())
    padded = np.full(size, REFUSED, np.int32)
    whose = np.zeros(size, np.int32)
    whose[: labels.size] = groups
    with self._lock:
      if self.targets is not None:
        labels, self._offered = _answer_plan.offer(
          labels, groups, self.targets, float(self.rule.max_gap), self._offered
        )
      padded[: labels.size] = labels
      found = admit_in_order(
        jnp.asarray(padded),
        jnp.asarray(whose),
        self.rule,
        num_groups=num_groups,
        num_classes=num_classes,
        counters=self._counters,
      )
      shown = np.asarray(found.labels)[: labels.size]
      self._counters = np.array(found.counters, np.int64)
      self._asked += np.bincount(groups, minlength=num_groups)
    return shown[0] if alone else shown

  @property
  def counters(self) -> np.ndarray:
    """[G, C] answers so far, by group and class."""
    with self._lock:
      return self._counters.copy()

  @property
  def coverage(self) -> np.ndarray:
    """[G] share of each group's people who were answered; NaN for none."""
    with self._lock:
      answered, asked = self._counters.sum(axis=1), self._asked
      found = np.full(len(asked), np.nan)
      return np.divide(answered, asked, out=found, where=asked > 0)

  @property
  def gap(self) -> float:
    """The largest disparity of what was answered; NaN if a group was not."""
    disparity = demographic_disparity(self.counters, notion=self.rule.disparity)
    return float(jnp.max(disparity))

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes rule and state to a JSON file, whole or not at all."""
    path = pathlib.Path(path)
    partial = path.with_name(path.name + ".partial")
    with self._saving:
      text = json.dumps(self._state())
      with open(partial, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
      os.replace(partial, path)

  def _state(self) -> dict[str, Any]:
    """Rule and counters at one moment, as JSON values."""
    with self._lock:
      plan = {}
      if self.targets is not None:
        plan = {"targets": self.targets.tolist(), "offered": self._offered.tolist()}
      return {
        "format": PLANNED if plan else FORMAT,
        "max_gap": float(self.rule.max_gap),
        "min_count": float(self.rule.min_count),
        "disparity": self.rule.disparity,
        "guard": self.rule.guard,
        "counters": self._counters.tolist(),
        "asked": self._asked.tolist(),
        **plan,
      }

  @classmethod
  def restore(cls, path: str | os.PathLike[str]) -> "Abstainer":
    """The gate as it was saved.

    Raises:
      ArgumentError: if the file is none of `save`.
    """
    try:
      state = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
      known = isinstance(state, dict) and state.get("format") in (FORMAT, PLANNED)
    except ValueError:
      known = False
    except OSError as error:
      raise checks.ArgumentError(
        f"{path} cannot be read ({error.strerror}); pass a file of save"
      ) from None
    checks.require(known, f"{path} is not a state of an Abstainer; save one first")
    try:
      table = np.array(state["counters"], np.int64)
      num_groups, num_classes = table.shape
      rule = CounterRule(state["max_gap"], state["min_count"], state["disparity"], state["guard"])
      plan = {}
      if state["format"] == PLANNED:
        plan = {"targets": state["targets"], "offered": state["offered"]}
      return cls(
        rule,
        num_groups=num_groups,
        num_classes=num_classes,
        counters=table,
        asked=state["asked"],
        **plan,
      )
    except (KeyError, OverflowError, TypeError, ValueError) as error:
      raise checks.ArgumentError(
        f"{path} is damaged ({error}); restore a copy, or begin with a new gate"
      ) from None


def _checked(targets: ArrayLike, num_classes: int) -> np.ndarray:
  found = np.array(targets, np.float64)
  checks.require(
    found.shape == (num_classes,), f"targets has shape {found.shape}; pass one share per class"
  )
  checks.require(
    bool(np.all(found >= 0)) and bool(np.isclose(found.sum(), 1)),
    "targets must be shares of the classes that sum to 1",
  )
  return found
