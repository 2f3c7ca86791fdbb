"""Training for equal group losses, and against an adversary, together.

      mean loss                                       what is fitted
    + penalty sum_a |L_a - L|                         accuracy parity
    + robust_weight mean loss of pushed inputs        robustness to epsilon

or, with `focus` q, sum_a L_a^(q+1) / (q+1) in the place of the mean loss, which
weighs the groups that lose most. L_a are the losses of the batch's groups.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.fairness._groups import group_means
from jaxfair.training import _batches, _driver
from jaxfair.training._fit import Feed, FitConfig, FitProgram, FitState
from jaxfair.training._program import Given, Program, settings, train
from jaxfair.training._regularizers import pull
from jaxfair.types import (
  Examples,
  Features,
  Fit,
  Groups,
  Key,
  Model,
  Number,
  Params,
  PerExampleLoss,
  PerPerson,
)

Judge = Callable[[Any], tuple[jax.Array, jax.Array]]


class Adversary(Protocol):
  """An attack that perturbs inputs during training, such as `robustness.pgd(...)`.

  It is a static argument of jit: equal ones share a compiled program.
  """

  def check(self, x: Features) -> None:
    """Raises, before any work, for inputs that cannot be perturbed."""

  def perturb(self, judge: Judge, x: Features, *, epsilon: Number, key: Key) -> jax.Array:
    """Inputs within epsilon of x with larger losses.

    `judge` gives each row's loss, and whether it is predicted wrongly.
    """

  def __hash__(self) -> int: ...


@settings("plain", "penalty", "focus", "epsilon", "robust_weight")
class FairRobustConfig:
  """Settings of `fair_robust`.

  The numbers may be traced: stacked values are swept by `fit_many`.

  Attributes:
    num_groups: static number of groups.
    plain: steps, batches, rate, optimizer and regularizers.
    penalty: lambda, weight of the gaps |L_a - L|.
    focus: q >= 0; None fits the mean loss. 0 weighs all groups equally, which
      is the mean loss only if they have the same size.
    adversary: the attack that perturbs inputs; None for none.
    epsilon: size of its perturbations (epsilon_*).
    robust_weight: weight of the loss of perturbed inputs; 1 in the thesis.
  """

  num_groups: int
  plain: FitConfig = dataclasses.field(default_factory=FitConfig)
  penalty: Number = 0.0
  focus: Number | None = None
  adversary: Adversary | None = None
  epsilon: Number = 0.0
  robust_weight: Number = 1.0

  @property
  def loop(self) -> _driver.Loop:
    """See `driver.choose_loop`."""
    return self.plain.loop

  def check(self, model: Model, loss: PerExampleLoss, examples: Examples) -> None:
    """Raises, before any work, if training with these settings is impossible."""
    self.plain.check(model, loss, examples)
    checks.one_of("plain.sampling", self.plain.sampling, ("shuffle",))
    if checks.concrete(self.plain.proximity):
      checks.require(
        not np.any(np.asarray(self.plain.proximity) > 0),
        "plain.proximity is not part of this objective; use weight_decay",
      )
    checks.require(
      not self.plain.penalties,
      "plain.penalties are not part of this objective; use penalty or focus",
    )
    checks.integer("num_groups", self.num_groups, low=1)
    checks.ids("examples.group", examples.group, self.num_groups)
    checks.non_negative("penalty", self.penalty)
    if self.focus is not None:
      checks.non_negative("focus", self.focus)
    checks.non_negative("epsilon", self.epsilon)
    checks.non_negative("robust_weight", self.robust_weight)
    pushes = checks.concrete(self.epsilon) and np.any(np.asarray(self.epsilon) > 0)
    checks.require(
      not pushes or self.adversary is not None,
      f"epsilon={self.epsilon} needs an attack; pass adversary=robustness.pgd(input_range=...)",
    )
    if self.adversary is not None:
      self.adversary.check(examples.x)


def fair_robust(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: FairRobustConfig,
  *,
  key: Key,
  initial: Params | None = None,
) -> Fit:
  """Trains for accuracy, equal group losses and robustness at once.

  Args:
    model: any model.
    loss: `(logits, y) -> [n]` losses: `models.cross_entropy`, `exponential`,
      or the bounded `ramp`, which no outlier can dominate.
    examples: the training part, with groups.
    config: settings.
    key: initial parameters, batches, the adversary's starts.
    initial: parameters to start from; drawn by `model.init` if None. The ramp loss has no gradient
      where the margin is below 0: start it from a trained model.

  Returns:
    `Fit(params, NonPrivateTrace)`; the traced loss is the objective.

  Assumptions:
    A group that has nobody in a batch is left out of that step. Batches must
    be large enough to distinguish differences of groups' losses from chance.

  Reference:
    Thesis chapter 6, (6.3), (6.30) and section 6.7.
  """
  return train(FairRobustProgram(model, loss), Given(examples, config, key, initial))


def group_objective(
  losses: PerPerson, group: Groups, *, num_groups: int, penalty: Number, focus: Number | None
) -> jax.Array:
  """Mean loss with the gaps' penalty, or the groups' losses with a focus.

  Args:
    losses: [n] losses.
    group: [n] group ids.
    num_groups: static number of groups; empty ones are left out.
    penalty: lambda.
    focus: q, or None for the mean loss.
  """
  mean = jnp.mean(losses)
  by_group = group_means(losses, group, num_groups)
  known = ~jnp.isnan(by_group)
  by_group = jnp.where(known, by_group, mean)
  gaps = jnp.where(known, jnp.abs(by_group - mean), 0.0)
  fitted = mean
  if focus is not None:
    powers = by_group ** (focus + 1) / (focus + 1)
    fitted = jnp.sum(jnp.where(known, powers, 0.0))
  return fitted + penalty * jnp.sum(gaps)


class FairRobustProgram(FitProgram):
  """Plain training with another objective, and a key of the adversary in every step."""

  chosen = Program.chosen  # groups are checked before the first step, so no source is taken

  def plain(self, config: FairRobustConfig) -> FitConfig:
    """The settings of plain training in a config."""
    return config.plain

  def key_of(self, given: Given) -> jax.Array:
    """The adversary's key."""
    return jax.random.fold_in(given.key, 3)

  def sum(self, state: FitState, feed: Feed, inputs: Given) -> tuple[Params, jax.Array]:
    """The gradient of the objective, and its value."""
    config, examples = inputs.config, inputs.examples
    if feed.rows is not None:
      examples = _batches.look_up(examples, feed.rows)
    pushed = self._pushed(state.params, examples, config, feed.key)

    def objective(p: Params) -> jax.Array:
      losses = self.loss(self.model.apply(p, examples.x), examples.y)
      value = group_objective(
        losses,
        examples.group,
        num_groups=config.num_groups,
        penalty=config.penalty,
        focus=config.focus,
      )
      if pushed is not None:
        under = self.loss(self.model.apply(p, pushed), examples.y)
        value += config.robust_weight * jnp.mean(under)
      return value + pull(p, config.plain, None)

    value, gradient = jax.value_and_grad(objective)(state.params)
    return gradient, value

  def _pushed(
    self, params: Params, examples: Examples, config: FairRobustConfig, key: Key
  ) -> jax.Array | None:
    if config.adversary is None:
      return None

    def judge(x: Features) -> tuple[jax.Array, jax.Array]:
      logits = self.model.apply(params, x)
      wrong = jnp.argmax(logits, axis=-1) != examples.y
      return self.loss(logits, examples.y), wrong

    return config.adversary.perturb(judge, examples.x, epsilon=config.epsilon, key=key)
