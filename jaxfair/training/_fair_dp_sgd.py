"""FairDP-SGD, and mending a trained model's disparity on public people."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxfair import checks, models
from jaxfair.fairness._disparity import DisparityKind
from jaxfair.fairness._known_labels import PARITY, NotionName
from jaxfair.training._dp_sgd import dp_sgd
from jaxfair.training._dp_sgd_config import DpSgdConfig
from jaxfair.training._fit import FitConfig, fit
from jaxfair.training._parity_penalty import Placement, parity_penalty
from jaxfair.types import (
  Examples,
  Features,
  Fit,
  Groups,
  Key,
  Labels,
  Model,
  Number,
  Params,
  PerExampleLoss,
)


def fair_dp_sgd(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: DpSgdConfig = DpSgdConfig(),
  *,
  public_x: Features,
  public_group: Groups,
  num_groups: int,
  lam: Number,
  placement: Placement = "after",
  disparity: DisparityKind = "rest",
  sample: int | None = None,
  notion: NotionName = PARITY,
  public_labels: Labels | None = None,
  key: Key,
  initial: Params | None = None,
) -> Fit:
  """DP-SGD with a penalty on the disparity of groups (FairDP-SGD).

  mean loss + lam max_{z, k} Gamma(z, k), Gamma measured on public people

  To sweep lam in one program, or to keep a ledger, put the penalty into the config yourself:

      penalty = training.parity_penalty(model, x, group, num_groups=2,
                                        lam=jnp.linspace(0, 10, 8))
      config = training.DpSgdConfig(penalties=(penalty,))
      training.fit_many(model, loss, people, config, keys=eight_keys,
                        trainer=training.dp_sgd)

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    examples: the private data.
    config: settings of DP-SGD; its penalties are replaced.
    public_x: [m, ...] public people.
    public_group: [m] their groups.
    num_groups: G.
    lam: weight of the penalty, 0 or above.
    placement: "after" the noise, or "inside" the clip as the paper lists it.
    disparity: which Gamma.
    sample: public people drawn afresh for each step; None uses all.
    notion: notion of fairness; see `fairness.CounterRule`.
    public_labels: [m] class ids of the public people; demographic parity reads none.
    key: as in `dp_sgd`.
    initial: as in `dp_sgd`.

  Returns:
    The same as `dp_sgd`.

  Privacy:
    That of DP-SGD, `config.event(examples.size)`, in both placements.

  Reference:
    Learning to Walk Impartially on the Pareto Frontier of Fairness, Privacy,
    and Utility, Algorithm 6.
  """
  penalty = parity_penalty(
    model,
    public_x,
    public_group,
    num_groups=num_groups,
    lam=lam,
    placement=placement,
    disparity=disparity,
    sample=sample,
    notion=notion,
    labels=public_labels,
  )
  config = dataclasses.replace(config, penalties=(penalty,))
  return dp_sgd(model, loss, examples, config, key=key, initial=initial)


def calibrate_fairness(
  model: Model,
  params: Params,
  x: Features,
  group: Groups,
  *,
  num_groups: int,
  lam: Number,
  labels: Labels | None = None,
  steps: int = 200,
  learning_rate: Number = 1e-3,
  disparity: DisparityKind = "rest",
  notion: NotionName = PARITY,
  key: Key,
) -> Fit:
  """Fine-tunes a trained model on public people to lower its disparity.

  mean_i H(p_i, f(x_i)) + lam max_{z, k} Gamma(z, k)

  where p_i are the labels or, without labels, the model's own soft predictions before
  fine-tuning: the model then changes no more than parity requires.

  Args:
    model: any model.
    params: parameters trained by any method.
    x: [n, ...] public people.
    group: [n] their groups.
    num_groups: G.
    lam: weight of the disparity, 0 or above.
    labels: [n] public class ids, if they are known.
    steps: number of Adam steps, each on all people.
    learning_rate: learning rate of Adam.
    disparity: which Gamma.
    notion: notion of fairness; all but demographic parity need `labels`.
    key: for the driver; nothing is drawn without batches.

  Returns:
    `Fit` with the new parameters. Every person is still answered.

  Privacy:
    Post-processing of the parameters with public people; it costs no privacy.

  Reference:
    As above, appendix D.1, which uses labels; the version without labels is ours.
  """
  checks.non_negative("lam", lam)
  checks.positive("learning_rate", learning_rate)
  own: dict[str, Any] = {"disparity": disparity, "notion": notion, "labels": labels}
  penalty = parity_penalty(model, x, group, num_groups=num_groups, lam=lam, **own)
  x = jnp.asarray(x)
  loss: PerExampleLoss
  if labels is None:
    loss, y = models.soft_cross_entropy, jax.nn.softmax(model.apply(params, x))
  else:
    checks.same_length(x=x, labels=labels)
    loss, y = models.cross_entropy, jnp.asarray(labels, jnp.int32)
  config = FitConfig(
    learning_rate=learning_rate,
    steps=steps,
    batch_size=None,
    optimizer=optax.adam,
    penalties=(penalty,),
  )
  people = Examples(x, y, np.asarray(group))
  return fit(model, loss, people, config, key=key, initial=params)
