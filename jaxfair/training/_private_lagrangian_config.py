"""Settings of PF-LD, and what they cost."""

import dataclasses
import math

import optax

from jaxfair import accounting, checks
from jaxfair.accounting import _grid, _units
from jaxfair.accounting._search import smallest_noise
from jaxfair.fairness.constraints import Notion
from jaxfair.privacy import _grid_sums
from jaxfair.privacy._clipping import Method
from jaxfair.privacy._sampling import PoissonSampler
from jaxfair.training import _driver
from jaxfair.training._batches import poisson_sampler
from jaxfair.training._dp_sgd_config import check_per_example
from jaxfair.training._lagrangian_config import check_rounds
from jaxfair.training._optimizers import Optimizer
from jaxfair.training._program import settings
from jaxfair.types import Examples, Model, Number, PerExampleLoss

# Statistics of one person that a notion may compare; their number is in the
# distance of the discrete noise to the continuous one, which is charged.
MAX_WIDTH = 1024


@settings(
  "learning_rate",
  "weight_decay",
  "proximity",
  "dual_rate",
  "tolerance",
  "l2_clip",
  "noise_multiplier",
  "dual_noise",
  "count_noise",
)
class PrivateLagrangianConfig:
  """Settings of `private_lagrangian`; `calibrated` sets the three noises.

  Attributes:
    learning_rate: learning rate of the primal optimizer.
    weight_decay: pulls all parameters to 0.
    proximity: pulls them to the `anchor`, which must not depend on the groups.
    dual_rate: the multipliers' step.
    tolerance: the violation that is allowed.
    l2_clip: bound C on the gradient of one person's statistic.
    noise_multiplier: noise on the constraints' gradient, over what one person can
      add to its private part: C times half the range of the groups' prices.
    dual_noise: noise on the violations, over what one attribute can move.
    count_noise: noise on the groups' sizes, over what one attribute can move.
    constraint: a notion of `fairness.constraints` with a bounded statistic.
    rounds: dual steps.
    steps_per_round: primal steps before each of them.
    batch_size: expected size of a Poisson sample.
    max_batch: public cap on it; None chooses one that is never reached.
    optimizer: a function of the learning rate, such as `optax.adamw`, whose rate can be swept; or
      any optax object, such as `optax.adamw(schedule)`, and `learning_rate` is not used then.
    method: how gradients are clipped; see `privacy.clipped_grad`.
    loop: "scan", "step" or "auto", which chooses the faster one for model and backend.
  """

  learning_rate: Number = 1e-3
  weight_decay: Number = 0.0
  proximity: Number = 0.0
  dual_rate: Number = 0.5
  tolerance: Number = 0.0
  l2_clip: Number = 1.0
  noise_multiplier: Number = 1.0
  dual_noise: Number = 100.0
  count_noise: Number = 100.0
  constraint: Notion | None = None
  rounds: int = 50
  steps_per_round: int = 20
  batch_size: int = 256
  max_batch: int | None = None
  optimizer: Optimizer = optax.adam
  method: Method = "auto"
  loop: _driver.Loop = "scan"

  def check(self, model: Model, loss: PerExampleLoss, examples: Examples) -> None:
    """Raises, before any work, if private training with these settings is impossible."""
    check_rounds(self, model, examples)
    checks.positive("l2_clip", self.l2_clip)
    for name in ("noise_multiplier", "dual_noise", "count_noise"):
      checks.non_negative(name, getattr(self, name))
    checks.require(
      isinstance(self.constraint, Notion),
      "constraint must be a notion of fairness.constraints: other functions "
      "have no known sensitivity",
    )
    checks.require(
      math.isfinite(self.notion.bound) and self.notion.unmix is None,
      f"{self.notion.name} has no bound, so no noise protects it; pass "
      "bound=... or choose another notion",
    )
    checks.ids("examples.group", examples.group, self.notion.num_groups)
    self.sampler(examples.size)
    check_per_example(model, loss, examples)

  @property
  def notion(self) -> Notion:
    """The constraint."""
    assert isinstance(self.constraint, Notion)
    return self.constraint

  def sampler(self, num_examples: int) -> PoissonSampler:
    """The sampler this config trains with on n examples."""
    steps = self.rounds * self.steps_per_round
    return poisson_sampler(num_examples, self.batch_size, steps, max_batch=self.max_batch)

  def event(self, num_examples: int) -> accounting.Event:
    """The event that a training on n people is charged as, if one person's group changes."""
    sampler = self.sampler(num_examples)
    return accounting.Composed(
      (
        accounting.DpSgd(
          float(self.noise_multiplier),
          sampler.rate,
          self.rounds * self.steps_per_round,
          num_examples,
          sampler.max_batch,
        ),
        accounting.Repeated(accounting.Gaussian(float(self.dual_noise)), self.rounds),
        accounting.Gaussian(float(self.count_noise)),
        accounting.ApproxDp(0.0, self._grid_delta()),
      )
    )

  def _grid_delta(self) -> float:
    """What discrete noise on sizes and sums adds to the Gaussian events.

    Neighbors differ in two sizes, and in the sums of two cells.
    """
    dual, count = (
      _grid.grid_delta(noise_multiplier=float(noise), distance=_grid_sums.distance(numbers))
      for noise, numbers in ((self.dual_noise, 2 * MAX_WIDTH), (self.count_noise, 2))
    )
    return min(1.0, self.rounds * dual + count)

  def guarantee(self, num_examples: int, *, delta: float) -> accounting.PrivacyGuarantee:
    """The guarantee of a training on n people, if one person's group changes."""
    return accounting.composed_guarantee(
      [self.event(num_examples)], delta=delta, relation=accounting.Relation.ATTRIBUTE
    )

  def calibrated(
    self,
    num_examples: int,
    *,
    epsilon: float,
    delta: float,
    dual_share: float = 0.25,
    count_share: float = 0.05,
  ) -> "PrivateLagrangianConfig":
    """The same settings with noise for (epsilon, delta).

    Args:
      num_examples: n, public.
      epsilon: epsilon of the whole training, for one person's group.
      delta: delta of the whole training, for one person's group.
      dual_share: share of the budget (in zCDP) for the violations.
      count_share: for the groups' sizes; the primal gets all that is left.
    """
    for name, value in (("dual", dual_share), ("count", count_share)):
      checks.number(f"{name}_share", value, low=0.0, high=0.5, open_low=True, open_high=True)
    unit = accounting.discrete_gaussian_sigma(epsilon=epsilon, delta=delta)
    config = dataclasses.replace(
      self,
      dual_noise=unit * math.sqrt(self.rounds / dual_share),
      count_noise=unit / math.sqrt(count_share),
    )

    def cost(multiplier: float) -> float:
      own = dataclasses.replace(config, noise_multiplier=multiplier)
      try:
        return own.guarantee(num_examples, delta=delta).epsilon
      except _units.NotCovered:  # hardly any noise
        return math.inf

    found = smallest_noise(cost, epsilon, 2.0)
    return dataclasses.replace(config, noise_multiplier=found)
