"""Settings of DP-SGD and of the methods that add something to it."""

from typing import Annotated, Any, Literal

from jaxfair import checks, privacy, training
from jaxfair._fields import Count, NonNegative, Positive, Probability, Within
from jaxfair.fairness._known_labels import PARITY, NotionName
from jaxfair.methods._answer_plans import refuse_unplanned
from jaxfair.methods._method import NetworkSettings, refuse_margin
from jaxfair.training import _optimizers


class DpSgdSettings(NetworkSettings):
  """Settings of DP-SGD; see `training.DpSgdConfig`.

  What is None is chosen from the number of people and the budget (docs/private_training.md).

  Attributes:
    optimizer: a name ("sgd", "momentum", "adam"), a function of the learning rate such as
      `optax.adamw`, or an optax object such as `optax.adamw(schedule)`.
    row_norm: radius of the ball that features are projected into, at training and at prediction;
      0 leaves them as they are.
    shards: number of blocks of people that devices can share; part of the price. None chooses one
      where a release is shared, and draws everybody at once elsewhere.
    bands: number of steps that share their noise.
    average: decay of a running mean of the parameters, which is released in place of the last ones;
      0.9 to 0.999. None releases the last ones.
    chunk_size: number of people of a batch that are processed together, so that memory does not
      grow with the batch; None processes all.
  """

  learning_rate: Positive | None = None
  l2_clip: Positive = 1.0
  weight_decay: NonNegative = 0.0
  steps: Count | None = None
  batch_size: Count | None = None
  optimizer: _optimizers.OptimizerChoice | None = None
  schedule: _optimizers.ScheduleName = "constant"
  row_norm: NonNegative | None = None
  shards: Count | None = None
  bands: Count = 1
  average: Annotated[float, Within(0.0, 1.0, open_high=True)] | None = None
  chunk_size: Count | None = None

  def recipe(self) -> dict[str, Any]:
    """Options of `training.DpSgdConfig` beside rate, noise and batches."""
    return {"average": self.average, "chunk_size": self.chunk_size}

  def check_shape(self, shape: tuple[int, ...]) -> None:
    """Raises for people that the recipe does not suit."""


class RecipeSettings(DpSgdSettings):
  """Settings of DP-SGD with the recipes that no other method combines with its own rule.

  Attributes:
    rule: "clip" scales gradients beyond the bound down to it; "normalize" scales nearly all of them
      to the bound, which then only scales the learning rate.
    clip_quantile: share of the gradients that should fit under the clip bound, which then follows
      their norms from `l2_clip` on; its noisy counts are part of the price. None keeps the bound.
    lowest_clip: what that bound never falls below.
    count_noise: standard deviation of the noise on these counts, in people.
    views: number of views of an image, mirrored and shifted at random, whose gradients are averaged
      before the clip.
    shift: pixels by which a view is shifted at most.
  """

  rule: Literal["clip", "normalize"] = "clip"
  clip_quantile: Probability | None = None
  lowest_clip: NonNegative = 0.0
  count_noise: Positive = 10.0
  views: Count = 1
  shift: Annotated[int, Within(0)] = 4

  def recipe(self) -> dict[str, Any]:
    """As `DpSgdSettings`, with the clip rule and the views."""
    adaptive = None
    if self.clip_quantile is not None:
      adaptive = privacy.QuantileClip(
        self.clip_quantile, count_noise=self.count_noise, lowest=self.lowest_clip
      )
    augment = training.FlipAndShift(self.shift) if self.views > 1 else None
    return super().recipe() | {
      "rule": self.rule,
      "adaptive": adaptive,
      "augment": augment,
      "views": self.views,
    }

  def check_shape(self, shape: tuple[int, ...]) -> None:
    """Raises if views are asked of features that are not images."""
    checks.require(
      self.views == 1 or len(shape) == 3,
      f"views={self.views} are of images [height, width, channels], but people have shape "
      f"{shape}; use views=1",
    )


class FairDpSgdSettings(DpSgdSettings):
  """Settings of FairDP-SGD.

  Attributes:
    lam: weight of the disparity on public people.
    placement: "after" the noise, or "inside" the clip as the paper lists it.
    disparity: which difference between groups; see `fairness`.
    sample: public people drawn for each step; None uses all.
    max_gap: margin between groups that predictions are shown by; None shows
      all.
    min_count: people of a group before the margin is kept.
    notion: of fairness, in the penalty. All but demographic parity read the labels of the public
      people, and have no margin for predictions, whose true labels are not known.
    sharpness: multiplies the logits in the penalty: 1 compares probabilities, more compares
      smoothed decisions.
    plan_answers: whether the shares of classes among shown predictions are planned on public
      people, so that the margin lets more be shown; see docs/fairpate.md.
  """

  lam: NonNegative = 0.1
  placement: Literal["after", "inside"] = "after"
  disparity: Literal["rest", "pairwise", "overall"] = "rest"
  sample: Count | None = None
  max_gap: NonNegative | None = None
  min_count: Count = 50
  notion: NotionName = PARITY
  sharpness: Positive = 1.0
  plan_answers: bool = False

  def check(self) -> None:
    """Raises for a margin that cannot be kept."""
    super().check()
    refuse_margin(self)
    refuse_unplanned(self)


class DpSgdGlobalSettings(DpSgdSettings):
  """Settings of DPSGD-Global and DPSGD-Global-Adapt.

  Attributes:
    bound: Z, which gradients should not exceed.
    adapt: whether gradients beyond Z are shortened to it and Z follows their norms; otherwise they
      are left out, and Z stays.
    quantile: share of the gradients that Z should exceed, if it adapts.
    count_noise: standard deviation of the noise on the count behind Z, in people.
  """

  bound: Positive = 10.0
  adapt: bool = True
  quantile: Probability = 0.95
  count_noise: Positive = 20.0
