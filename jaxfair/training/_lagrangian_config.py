"""Settings of training under constraints."""

from collections.abc import Callable
from typing import Any, Literal

import jax
import optax

from jaxfair import checks
from jaxfair.fairness._notion import Notion, Violations
from jaxfair.training import _driver, _regularizers
from jaxfair.training._fit import check_batch, check_examples
from jaxfair.training._optimizers import Optimizer, check_optimizer
from jaxfair.training._program import settings
from jaxfair.types import Examples, Model, Number, Params, PerExampleLoss

# (params, batch) -> violations; a bare array is differentiable and measured.
Constraint = Callable[[Params, Examples], Violations | jax.Array]


@settings("learning_rate", "weight_decay", "proximity", "dual_rate", "tolerance")
class LagrangianConfig:
  """Settings of `lagrangian`.

  The first five fields may be traced: stacked values are swept by `fit_many`
  in one program. Regularizers are those of `FitConfig`: the papers' proximity
  term lambda ||theta - theta*||^2 is `proximity=2 * lambda`.

  Attributes:
    learning_rate: learning rate of the primal optimizer.
    weight_decay: pulls all parameters to 0.
    proximity: pulls them to the `anchor`.
    dual_rate: s, the multipliers' step.
    tolerance: the violation that is allowed; alpha.
    constraint: a `fairness.constraints` notion, or any hashable function
      `(params, batch) -> violations`. Without one it is plain training.
    rounds: steps of the multipliers.
    steps_per_round: primal steps before each of them.
    batch_size: batch size of primal steps; None for all examples.
    dual_size: number of people that the violations are measured on, drawn
      afresh for each dual step; None for all examples.
    decay: whether primal steps shrink to 0, by a cosine, over the training;
      otherwise the last batches, not the limits, decide where it ends.
    keep: which parameters to return. "best": of the last quarter of the
      rounds, those with the least loss within the tolerance or, if none is,
      those with the least violation. "last": the last.
    optimizer: a function of the learning rate, such as `optax.adamw`, whose rate can be swept; or
      any optax object, such as `optax.adamw(schedule)`, and `learning_rate` is not used then.
    loop: "scan", "step" or "auto", which chooses the faster one for model and backend.
  """

  learning_rate: Number = 1e-3
  weight_decay: Number = 0.0
  proximity: Number = 0.0
  dual_rate: Number = 0.5
  tolerance: Number = 0.0
  constraint: Notion | Constraint | None = None
  rounds: int = 50
  steps_per_round: int = 20
  batch_size: int | None = 256
  dual_size: int | None = None
  decay: bool = True
  keep: Literal["best", "last"] = "best"
  optimizer: Optimizer = optax.adam
  loop: _driver.Loop = "auto"

  def check(self, model: Model, loss: PerExampleLoss, examples: Examples) -> None:
    """Raises, before any work, if training with these settings is impossible."""
    del loss
    check_rounds(self, model, examples)
    checks.require(
      self.constraint is None or callable(self.constraint),
      f"constraint={self.constraint!r} is not a function; pass a notion such as "
      "fairness.constraints.demographic_parity(num_groups)",
    )
    checks.one_of("keep", self.keep, ("best", "last"))
    check_batch("batch_size", self.batch_size, examples)
    check_batch("dual_size", self.dual_size, examples)
    if isinstance(self.constraint, Notion):
      checks.ids("examples.group", examples.group, self.constraint.num_groups)


def check_rounds(config: Any, model: Model, examples: Examples) -> None:
  """Raises for settings and examples that no training in rounds can use."""
  check_optimizer(config)
  _regularizers.check(config, model)
  checks.non_negative("dual_rate", config.dual_rate)
  checks.non_negative("tolerance", config.tolerance)
  checks.integer("rounds", config.rounds, low=1)
  checks.integer("steps_per_round", config.steps_per_round, low=1)
  check_examples(model, examples)
