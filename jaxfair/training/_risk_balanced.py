"""DP-SGD that balances what privacy costs the groups.

  min L(theta; D) + sum_a gamma1 |<g_a - g, g - gbar>| + gamma2 |T_a - T|

The first term is the gap in what clipping does, the second the gap in what noise does: T are
Hessian traces, or in their place mean closeness to the boundary. The penalty couples people through
their groups' means, so clipping each person does not protect it. Computed on public data it needs
no protection; on private data no epsilon covers it, and none is given.
"""

import dataclasses
import hashlib
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks
from jaxfair.analysis._boundary import closeness
from jaxfair.analysis._curvature import check_people, trace_per_person
from jaxfair.analysis._directional_derivatives import per_example
from jaxfair.analysis._norms import gradient_norms
from jaxfair.fairness._groups import group_means
from jaxfair.privacy._clip_factors import clip_factor
from jaxfair.training import _batches
from jaxfair.training._dp_sgd_config import DpSgdConfig
from jaxfair.training._program import settings
from jaxfair.types import Examples, Key, Model, Number, Params, PerExampleLoss

Form = Literal["closeness", "trace"]


def risk_penalty(
  model: Model,
  loss: PerExampleLoss,
  people: Examples,
  *,
  num_groups: int,
  public: bool,
  clip_weight: Number | None = 1.0,
  noise_weight: Number | None = 1.0,
  form: Form = "closeness",
  sample: int | None = None,
) -> "RiskPenalty":
  """A penalty on gaps in excess risk between groups, for `DpSgdConfig(penalties=...)`.

      penalty = training.risk_penalty(
        model, loss, public_people, num_groups=2, public=True
      )
      config = training.DpSgdConfig(penalties=(penalty,))
      fit = training.train_to_budget(model, loss, people, config, ...)

  Args:
    model: the model that is trained.
    loss: the loss that is minimized.
    people: examples with groups; the penalty balances the gaps between these groups.
    num_groups: static number of groups G.
    public: whether `people` is public: nobody in it needs protection. There is
      no default, because everything depends on it.
    clip_weight: gamma1; None leaves the term, and its cost, out.
    noise_weight: gamma2; None leaves the term, and its cost, out. The thesis uses 1 for both.
    form: "closeness" balances 1 - sum_k f_k^2, the thesis's cheap form;
      "trace" balances the Hessians' exact traces.
    sample: people drawn afresh for each step, with replacement and equally many
      of each group, whose means weigh as much as the group has people; None
      uses all of them in every step.

  Returns:
    The penalty. Make it once: each one compiles its own training.

  Privacy:
    With `public=True` the guarantee is exactly that of DP-SGD: the penalty's gradient
    is a function of released parameters and public data, added after the noise. With `public=False`
    it is the thesis's form, and the config refuses to give an epsilon.

  Reference:
    Thesis chapter 3, section 3.9, (3.6).
  """
  weights = {"clip_weight": clip_weight, "noise_weight": noise_weight}
  for name, value in weights.items():
    if value is not None:
      checks.non_negative(name, value)
  checks.require(
    clip_weight is not None or noise_weight is not None,
    "clip_weight and noise_weight are both None; give one of them a weight, or "
    "train without a penalty",
  )
  checks.one_of("form", form, ("closeness", "trace"))
  checks.require(isinstance(public, bool), f"public={public!r} must be True or False")
  check_people(people, num_groups)
  checks.finite("people.x", people.x)
  if sample is not None:
    checks.integer("sample", sample, low=num_groups, remedy="it is shared out among the groups")
  return RiskPenalty(
    clip_weight, noise_weight, model, loss, _Held(people), int(num_groups), form, sample, public
  )


def clipped_part_event(config: DpSgdConfig, num_examples: int) -> accounting.DpSgd:
  """The event of the clipped part of a training alone.

  For reports of the thesis's form, whose penalty reads private data. This is
  **not** the cost of the trained model: the penalty's gradients are not in it,
  and any number made of it must be told together with that.
  """
  return dataclasses.replace(config, penalties=()).event(num_examples)


@settings("clip_weight", "noise_weight")
class RiskPenalty:
  """What `risk_penalty` returns."""

  clip_weight: Any
  noise_weight: Any
  model: Model
  loss: PerExampleLoss
  people: "_Held"
  num_groups: int
  form: Form
  sample: int | None
  public: bool
  inside: ClassVar[bool] = False

  def check(self, model: Model) -> None:
    """Raises if another model is trained than the one it was made for."""
    checks.require(
      self.model == model,
      "the penalty was made for another model; pass the trained model to risk_penalty",
    )

  def gradient(self, params: Params, *, l2_clip: jax.Array | None, key: Key) -> Params:
    """The penalty's gradient, on all its people or on a fresh sample."""
    people, shares = jax.tree.map(jnp.asarray, self.people.examples), None
    if self.sample is not None:
      rows, shares = self._strata(key)
      people = _batches.look_up(people, rows)
    return jax.grad(lambda p: self.value(p, people, l2_clip=l2_clip, shares=shares))(params)

  def _strata(self, key: Key) -> tuple[jax.Array, jax.Array]:
    """Rows, equally many of each group that occurs, and each row's share of everybody."""
    group = self.people.examples.group
    order = np.argsort(group, kind="stable")
    _, starts, counts = np.unique(group[order], return_index=True, return_counts=True)
    each = (self.sample or 0) // self.num_groups
    drawn = jax.random.randint(key, (len(counts), each), 0, counts[:, None])
    shares = np.repeat(counts / (len(group) * each), each)
    return jnp.asarray(order)[starts[:, None] + drawn].ravel(), jnp.asarray(shares, jnp.float32)

  def value(
    self, params: Params, people: Examples, *, l2_clip: Any, shares: jax.Array | None = None
  ) -> jax.Array:
    """The penalty; groups that are empty among the people are left out.

    Args:
      params: of the model.
      people: with their groups.
      l2_clip: C.
      shares: [n] what share of everybody each of the people stands for; equal by default.
    """
    if shares is None:
      shares = jnp.full(people.size, 1 / people.size)
    total = jnp.zeros(())
    if self.clip_weight is not None:
      gaps = self.clipping_gaps(params, people, shares, l2_clip=l2_clip)
      total += self.clip_weight * jnp.sum(gaps)
    if self.noise_weight is not None:
      total += self.noise_weight * jnp.sum(self.noise_gaps(params, people, shares))
    return total

  def clipping_gaps(
    self, params: Params, people: Examples, shares: jax.Array, *, l2_clip: Any
  ) -> jax.Array:
    """[G] |<g_a - g, g - gbar>|, 0 for an empty group.

    With u = g - gbar, the inner products <g_i, u> of all people are one
    forward derivative along u, and the rest is means of them.
    """

    def losses(p: Params) -> jax.Array:
      return per_example(self.model, self.loss, p, people)

    norms = gradient_norms(self.model, self.loss, params, people)
    lost = 1 - clip_factor(jnp.square(norms), l2_clip)
    _, backward = jax.vjp(losses, params)
    (shortfall,) = backward(lost * shares)  # g - gbar
    slopes = jax.jvp(losses, (params,), (shortfall,))[1]
    return self._gaps(slopes, people, shares)

  def noise_gaps(self, params: Params, people: Examples, shares: jax.Array) -> jax.Array:
    """[G] |T_a - T|, 0 for an empty group."""
    if self.form == "closeness":
      values = closeness(self.model.apply(params, people.x))
    else:
      values = trace_per_person(self.model, self.loss, params, people)
    return self._gaps(values, people, shares)

  def _gaps(self, values: jax.Array, people: Examples, shares: jax.Array) -> jax.Array:
    means, everybody = group_means(values, people.group, self.num_groups), shares @ values
    known = ~jnp.isnan(means)
    return jnp.where(known, jnp.abs(jnp.where(known, means, everybody) - everybody), 0.0)


class _Held:
  """People as a constant of the program, compared by identity."""

  def __init__(self, examples: Examples) -> None:
    self.examples = jax.tree.map(np.asarray, examples)

  def __repr__(self) -> str:
    """Their contents' digest: a resumed training must hold the same people."""
    digest = hashlib.sha256()
    for leaf in self.examples:
      digest.update(np.ascontiguousarray(leaf).tobytes())
    return f"{len(self.examples.y)} people {digest.hexdigest()[:16]}"
