"""DP-SGD that reads the private people's groups: DPSGD-F, and parity without public people."""

import dataclasses
from typing import Annotated, Any

from jaxfair import training
from jaxfair._fields import NonNegative, Positive, Within
from jaxfair.methods._gradient_settings import DpSgdSettings
from jaxfair.methods._gradients import DpSgd
from jaxfair.training import _group_rules, _optimizers


class DpSgdFSettings(DpSgdSettings):
  """Settings of DPSGD-F; see `training._group_rules.GroupClip`.

  Attributes:
    count_noise: standard deviation of the noise on each group's counts, in people.
    largest_bound: limit on a group's clip bound, over `l2_clip`.
  """

  count_noise: Positive = 10.0
  largest_bound: Annotated[float, Within(1.0, 1e6)] = 5.0


class DpSgdF(DpSgd):
  """DP-SGD with a clip bound for each group: wider where more gradients are clipped.

  C_k = C (1 + (m_k / b_k) / (m / b)), m_k of b_k people of group k beyond C

  Privacy:
    One person adds a gradient of norm C_k to the sum, whose noise is scaled to the largest C_k,
    and is counted once. Counts and sum are charged as one Gaussian mechanism; the proof is that of
    `training._group_rules.GroupClip`. Groups are private.
  """

  name = "dp_sgd_f"
  needs: frozenset[str] = frozenset({"groups"})
  scales: frozenset[str] = frozenset({"devices"})
  settings: type[DpSgdSettings] = DpSgdFSettings
  reference = "Xu, Du and Wu 2020"

  def _draft(self, settings: Any, groups: int) -> training.DpSgdConfig:
    rule = _group_rules.GroupClip(groups, settings.count_noise, settings.largest_bound)
    return dataclasses.replace(super()._draft(settings, groups), group_rule=rule)


class DpSgdParitySettings(DpSgdSettings):
  """Settings of DP-SGD with parity; see `training._group_rules.GroupParity`.

  Attributes:
    max_gap: difference between two groups' rates of predictions that is allowed in training.
    multiplier_rate: how fast multipliers grow with what is beyond it.
    multiplier_weight: what is beyond it in this step, times this, is added to them.
    count_noise: standard deviation of the noise on each count of predictions, in people.
    schedule: the rate falls to zero by default, since multipliers swing around their values while
      it does not, and the last step would decide where they stand.
  """

  schedule: _optimizers.ScheduleName = "cosine"
  max_gap: NonNegative = 0.0
  multiplier_rate: Positive = 0.1
  multiplier_weight: NonNegative = 3.0
  count_noise: Positive = 20.0


class DpSgdParity(DpSgd):
  """DP-SGD whose groups get each class equally often; no public people are needed.

  A person's loss has a term that lowers or raises the probabilities of their group's predictions,
  with multipliers that follow noisy counts of predictions by group.

  Privacy:
    The term is part of the gradient that is clipped, and a person is counted once. Counts and sum
    are charged as one Gaussian mechanism; the proof is that of
    `training._group_rules.GroupParity`. Groups are private.
  """

  name = "dp_sgd_parity"
  needs: frozenset[str] = frozenset({"groups"})
  scales: frozenset[str] = frozenset({"devices"})
  settings: type[DpSgdSettings] = DpSgdParitySettings
  reference = "Cotter, Jiang and Sridharan 2019; Tran et al. 2021"

  def _draft(self, settings: Any, groups: int) -> training.DpSgdConfig:
    rule = _group_rules.GroupParity(
      groups,
      settings.max_gap,
      settings.multiplier_rate,
      settings.multiplier_weight,
      settings.count_noise,
    )
    return dataclasses.replace(super()._draft(settings, groups), group_rule=rule)
