"""Predictions for new people, shown by the rule that a release carries.

A release never changes; how many answers each group was given is the state of a
deployment and lies in a file of its own, which is written before answers are shown.
"""

import contextlib
import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jaxfair import checks
from jaxfair.fairness import Abstainer
from jaxfair.fairness._counter import REFUSED
from jaxfair.methods._released import Released
from jaxfair.types import FeaturesLike, GroupsLike


class Served(NamedTuple):
  """What is shown about some people, in their order.

  Attributes:
    labels: [n] class ids; -1 where the rule abstains.
    scores: [n, C] probabilities; NaN where the rule abstains.
    coverage: share of each group that was answered, over all of a deployment; NaN for a
      group that nobody came from. None without a rule.
    notes: sentences on what the reader must know.
  """

  labels: np.ndarray
  scores: np.ndarray
  coverage: dict[str, float] | None
  notes: tuple[str, ...]


def serve(
  released: Released,
  x: FeaturesLike,
  group: GroupsLike | None = None,
  *,
  state: str | pathlib.Path | None = None,
) -> Served:
  """Predicts for new people, and abstains where the release's rule says so.

  Args:
    released: the model.
    x: [n, ...] features as they were recorded.
    group: [n] group ids, -1 for a group that the model does not know. Needed if the release
      has a margin between groups; not read otherwise.
    state: file of the counters, continued if it exists and written before this returns. None
      begins with no answers, and forgets them.

  Returns:
    What may be shown. Under a margin people of unknown groups are not answered: nobody could
    tell whether that is fair.
  """
  labels, scores = released.answer(x)
  if released.abstention is None:
    checks.require(state is None, "this release has no margin between groups, so no state to keep")
    return Served(labels, scores, None, ())
  checks.require(
    group is not None,
    f"this release keeps a margin between groups ({', '.join(released.group_names)}), so the "
    "group of each person is needed to show a prediction",
  )
  group = np.asarray(group)
  checks.same_length(x=x, group=group)
  known = group != REFUSED
  with _held(state):
    gate = released.abstainer(state)
    shown = np.full_like(labels, REFUSED)
    shown[known] = gate.answer(labels[known], group[known])
    if state is not None:
      gate.save(state)
  scores = np.where((shown == REFUSED)[:, None], np.nan, scores).astype(scores.dtype)
  coverage = dict(zip(released.group_names, map(float, gate.coverage), strict=True))
  notes = _notes(released, gate, int((~known).sum()), kept=state is not None)
  return Served(shown, scores, coverage, tuple(notes))


def _notes(released: Released, gate: Abstainer, unknown: int, *, kept: bool) -> Iterator[str]:
  least = int(gate.rule.min_count)
  if unknown:
    yield f"{unknown} people of groups that the model does not know were not answered"
  for name, many in zip(released.group_names, gate.counters.sum(axis=1).tolist(), strict=True):
    if many < least:
      yield (
        f"the margin is not kept for {name}: it has {many} answers, and the rule applies from "
        f"{least} on"
      )
  if np.count_nonzero(gate.counters.sum(axis=1)) == 1:
    yield "only one group has answers, so there is no other group to compare with"
  if not kept:
    yield (
      "counters started at zero and were not saved: pass the same state file with every batch "
      "to keep the margin over all of them"
    )


@contextlib.contextmanager
def _held(state: str | pathlib.Path | None) -> Iterator[None]:
  """Lets one process at a time continue a state."""
  if state is None:
    yield
    return
  import fcntl

  try:
    handle = os.open(f"{state}.lock", os.O_RDWR | os.O_CREAT, 0o600)
  except OSError as error:
    raise checks.ArgumentError(
      f"state {state} cannot be written ({error.strerror}); name a file in an existing folder"
    ) from None
  try:
    fcntl.flock(handle, fcntl.LOCK_EX)
    yield
  finally:
    os.close(handle)
