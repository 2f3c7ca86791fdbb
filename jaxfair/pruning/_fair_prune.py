"""Pruning that keeps groups together: constraints before, after, or both."""

import dataclasses
from typing import Any, Literal, NamedTuple

import jax

from jaxfair import checks, training, tree
from jaxfair.pruning import _constraints
from jaxfair.pruning import _masks as masking
from jaxfair.pruning._group_profile import check_curved, chunk_for
from jaxfair.types import Examples, Fit, Key, Model, Params, PerExampleLoss

Stage = Literal["never", "before", "after", "both"]
Kind = Literal["relaxed", "full"]
STAGES = ("never", "before", "after", "both")
KINDS = ("relaxed", "full")


@dataclasses.dataclass(frozen=True)
class FairPruneConfig:
  """Settings of `fair_prune`.

  Attributes:
    rates: shares of the weights to remove; every rate starts from the same
      trained network.
    fair: when the fairness constraint applies: in the training before pruning, in
      the fine-tuning after it, in both, or never.
    constraint: "relaxed" requires equal group losses, "full" equal
      gradient norms and top eigenvalues, which is expensive.
    train: how the whole network is trained; its own constraint is replaced.
    tune: how the pruned network is fine-tuned; its own constraint is replaced.
    curvature_steps: Lanczos steps in every training step under the full constraint.
    scope: see `magnitude_masks`.
    unit: see `magnitude_masks`.
    norm: see `magnitude_masks`.
  """

  rates: tuple[float, ...] = (0.3, 0.5, 0.7, 0.9)
  fair: Stage = "after"
  constraint: Kind = "relaxed"
  train: training.LagrangianConfig = dataclasses.field(default_factory=training.LagrangianConfig)
  tune: training.LagrangianConfig = dataclasses.field(
    default_factory=lambda: training.LagrangianConfig(rounds=20)
  )
  curvature_steps: int = 5
  scope: masking.Scope = "global"
  unit: masking.Unit = "weight"
  norm: masking.Norm = "l2"

  def __post_init__(self) -> None:
    masking.check_rates(self.rates)
    checks.one_of("fair", self.fair, STAGES)
    checks.one_of("constraint", self.constraint, KINDS)
    checks.integer("curvature_steps", self.curvature_steps, low=1)
    checks.one_of("scope", self.scope, masking.SCOPES)
    checks.one_of("unit", self.unit, masking.UNITS)
    checks.one_of("norm", self.norm, masking.NORMS)


class PrunedFit(NamedTuple):
  """What `fair_prune` returns.

  Attributes:
    params: pruned and fine-tuned, with a leading axis of rates; zero wherever
      a mask is False.
    masks: with a leading axis of rates; False where a weight was removed.
    dense: the network before pruning.
    trace: trace of the fine-tunings, with a leading axis of rates; not private.
  """

  params: Params
  masks: masking.Masks
  dense: Params
  trace: Any


def fair_prune(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: FairPruneConfig = FairPruneConfig(),
  *,
  num_groups: int,
  key: Key,
  dense: Params | None = None,
) -> PrunedFit:
  """Trains, prunes once and fine-tunes, with fairness constraints where the config asks for them.

      config = FairPruneConfig(rates=(0.9,), fair="after")
      fit = fair_prune(model, loss, people, config, num_groups=2, key=key)

  Args:
    model: any model.
    loss: `(logits, y) -> [n]` losses.
    examples: the training part, with the groups.
    config: settings.
    num_groups: static number of groups G.
    key: initial parameters and the order of batches.
    dense: a network that was trained already; the first training is left out.

  Returns:
    Plain parameters for every rate.

  Reference:
    Thesis chapter 5, section 5.6: No mitigation, Fair Bf Pruning, Fair Aft
    Pruning, Fair Both.
  """
  checks.one_key("key", key)
  checks.integer("num_groups", num_groups, low=1)
  checks.ids("examples.group", examples.group, num_groups)
  checks.require(
    dense is None or config.fair not in ("before", "both"),
    f"dense is trained already, so fair={config.fair!r} cannot hold before "
    "pruning; use 'after' or 'never', or leave dense out",
  )
  if config.constraint == "full" and config.fair != "never":
    check_curved(examples.group, num_groups, "use constraint='relaxed'")
  key_dense, key_tune = jax.random.split(key)
  held = _constraint(model, loss, num_groups, config)
  if dense is None:
    fair = held if config.fair in ("before", "both") else None
    dense = training.lagrangian(
      model, loss, examples, dataclasses.replace(config.train, constraint=fair), key=key_dense
    ).params
  masks = masking.masks_at_rates(
    dense, config.rates, scope=config.scope, unit=config.unit, norm=config.norm
  )
  fair = held if config.fair in ("after", "both") else None
  settings = dataclasses.replace(config.tune, constraint=fair)
  fit = tune_many(model, loss, examples, dense, masks, settings, key=key_tune)
  return PrunedFit(fit.params, masks, dense, fit.trace)


def fine_tune(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: training.FitConfig,
  *,
  params: Params,
  masks: masking.Masks,
  key: Key,
) -> Fit:
  """Continues training from a pruned network; removed weights stay zero.

  Args:
    model: any model.
    loss: `(logits, y) -> [n]` losses.
    examples: the training part.
    config: settings.
    params: the trained parameters; those that the masks remove are dropped.
    masks: from `magnitude_masks`; all masks of one network share a compiled program.
    key: order of the batches.

  Returns:
    `Fit` with plain parameters, zero wherever a mask is False.
  """
  masking.check_masks(params, masks)
  return training.fit(model, loss, examples, config, key=key, initial=params, mask=masks)


def tune_many(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  params: Params,
  masks: masking.Masks,
  config: training.LagrangianConfig,
  *,
  key: Key,
) -> Fit:
  """Fine-tunes one network under many masks, each with the same batches.

  Returns:
    `Fit` with a leading axis on every leaf.
  """

  def one(mask: Params) -> Fit:
    return training.lagrangian(model, loss, examples, config, key=key, initial=params, mask=mask)

  masking.check_masks(params, tree.take(masks, 0))
  if chunk_for(model, params, examples) is None:
    return jax.vmap(one)(masks)
  count = len(jax.tree.leaves(masks)[0])
  return tree.stack([one(tree.take(masks, i)) for i in range(count)])


def _constraint(
  model: Model, loss: PerExampleLoss, num_groups: int, config: FairPruneConfig
) -> Any:
  if config.constraint == "relaxed":
    return _constraints.relaxed(num_groups, loss)
  return _constraints.full(model, loss, num_groups, steps=config.curvature_steps)
