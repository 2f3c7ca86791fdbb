"""A penalty on the disparity of groups, measured on public people (DPFR)."""

import dataclasses
import functools
import hashlib
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, tree
from jaxfair.fairness._disparity import DISPARITY_KINDS, DisparityKind
from jaxfair.fairness._known_labels import PARITY, NotionName, known_labels
from jaxfair.fairness._soft import soft_disparity
from jaxfair.training._program import settings
from jaxfair.types import Features, Groups, Key, Labels, Model, Number, Params

Placement: TypeAlias = Literal["after", "inside"]
PLACEMENTS: tuple[Placement, ...] = ("after", "inside")


@functools.partial(
  jax.tree_util.register_dataclass, data_fields=["x", "group", "y"], meta_fields=[]
)
@dataclasses.dataclass(frozen=True, repr=False)
class PublicPeople:
  """Features, groups and, for notions that read them, labels; data of a program."""

  x: Any
  group: Any
  y: Any = None

  def __repr__(self) -> str:
    """Their contents' digest: a resumed training must hold the same people."""
    parts = [part for part in (self.x, self.group, self.y) if part is not None]
    if not checks.concrete(parts):
      return "traced people"
    digest = hashlib.sha256()
    for part in parts:
      digest.update(np.ascontiguousarray(part).tobytes())
    return f"{len(self.group)} people {digest.hexdigest()[:16]}"


@settings("lam", "people")
class ParityPenalty:
  """lam times the soft disparity of a model on public people.

  For `FitConfig(penalties=...)` and `DpSgdConfig(penalties=...)`. Made by
  `parity_penalty`. `lam` is a number that may be swept by `fit_many`; it and
  the people are data, so another one of the same shape compiles nothing.
  """

  lam: Number
  people: PublicPeople
  model: Model
  num_groups: int
  disparity: DisparityKind = "rest"
  temperature: float = 0.01
  sample: int | None = None
  placement: Placement = "after"
  notion: NotionName = PARITY
  sharpness: float = 1.0
  public = True

  @property
  def inside(self) -> bool:
    """Whether DP-SGD adds it to each gradient before clipping."""
    return self.placement == "inside"

  def check(self, model: Model) -> None:
    """Raises if another model is trained than the one it was made for."""
    checks.require(
      self.model == model,
      "the penalty was made for another model; pass the trained model to parity_penalty",
    )

  def gradient(self, params: Params, *, l2_clip: jax.Array | None, key: Key) -> Params:
    """lam times the disparity's gradient, on all people or a fresh sample."""
    del l2_clip
    x, group, y = jax.tree.map(jnp.asarray, (self.people.x, self.people.group, self.people.y))
    if self.sample is not None:
      rows = jax.random.randint(key, (self.sample,), 0, x.shape[0])
      x, group, y = jax.tree.map(lambda part: part[rows], (x, group, y))
    slope = jax.grad(lambda p: self.value(p, x, group, y))(params)
    return tree.scale(self.lam, slope)

  def value(self, params: Params, x: Features, group: Groups, y: Labels | None = None) -> jax.Array:
    """The soft disparity itself, without lam."""
    logits = self.model.apply(params, x)
    shares = jax.nn.softmax(logits if self.sharpness == 1 else self.sharpness * logits)
    return soft_disparity(
      shares,
      group,
      num_groups=self.num_groups,
      disparity=self.disparity,
      temperature=self.temperature,
      notion=self.notion,
      truth=y,
    )


def parity_penalty(
  model: Model,
  x: Features,
  group: Groups,
  *,
  num_groups: int,
  lam: Number = 1.0,
  placement: Placement = "after",
  disparity: DisparityKind = "rest",
  temperature: float = 0.01,
  sample: int | None = None,
  notion: NotionName = PARITY,
  labels: Labels | None = None,
  sharpness: float = 1.0,
) -> ParityPenalty:
  """A penalty on the largest disparity of a model's soft predictions.

  lam max_{z, k} Gamma(z, k), the maximum tempered by a softmax

  Args:
    model: the model that is trained.
    x: [n, ...] **public** people.
    group: [n] their groups.
    num_groups: G.
    lam: weight, 0 or above; the paper uses 0 to 10. Values stacked like
      `fit_many`'s keys are swept in one program.
    placement: where DP-SGD adds its gradient: "after" the noise, or "inside" every person's
      gradient before clipping, as the paper lists it. There the clip bounds the effect of the
      penalty, and steps take longer. After the noise nothing bounds it, so it needs a smaller lam;
      docs/evidence/fairpate.md has both.
    disparity: which Gamma.
    temperature: temperature of the tempered maximum.
    sample: people drawn afresh for each step; None uses all of them.
    notion: notion of fairness; see `fairness.CounterRule`. If it distinguishes true classes, the
      maximum is over those, too.
    labels: [n] **public** class ids of the people; demographic parity reads none.
    sharpness: multiplies the logits first. Shares of probabilities may agree where shares of
      decisions do not; a larger one compares smoothed decisions.

  Privacy:
    A function of the parameters and of public people, with their labels where the notion reads
    them: it costs no privacy in either place. Inside, each person's sum is clipped as a whole, so
    the sensitivity is the clip bound.

  Reference:
    Learning to Walk Impartially on the Pareto Frontier of Fairness, Privacy,
    and Utility, section 3.1 and Algorithm 6.
  """
  checks.non_negative("lam", lam)
  checks.positive("temperature", temperature)
  checks.positive("sharpness", sharpness)
  checks.one_of("placement", placement, PLACEMENTS)
  checks.one_of("disparity", disparity, DISPARITY_KINDS)
  checks.integer("num_groups", num_groups, low=1)
  checks.same_length(x=x, group=group)
  checks.finite("x", x)
  checks.ids("group", group, num_groups)
  if sample is not None:
    checks.integer("sample", sample, low=1)
  classes = 0 if labels is None else _num_classes(model, x)
  labels = known_labels(labels, notion, size=len(group), num_classes=classes)
  return ParityPenalty(
    lam,
    PublicPeople(x, group, labels),
    model,
    int(num_groups),
    disparity,
    float(temperature),
    sample,
    placement,
    notion,
    float(sharpness),
  )


def _num_classes(model: Model, x: Features) -> int:
  """The number of scores that the model gives a person."""
  x = jnp.asarray(x[:1])
  scores = jax.eval_shape(lambda: model.apply(model.init(jax.random.key(0), x[0]), x))
  return int(scores.shape[-1])
