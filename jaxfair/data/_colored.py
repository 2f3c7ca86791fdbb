"""Images whose color is a group that is correlated with the label.

As in ColorMNIST, the first half of the classes favors red, the second half
green, and a share `agreement` of the people has their class's favorite. The
named sets use two colors, agreement 0.75 and seed 0: with ten balanced
classes the disparity of the true labels is 0.2 (2 * 0.75 - 1) = 0.10, which is
what plain PATE shows on ColorMNIST in the FairPATE paper's Table 1. That paper
does not state its own construction.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.data import _rules
from jaxfair.data._dataset import Dataset, Provenance
from jaxfair.data._files import Files
from jaxfair.data._sets import images
from jaxfair.data._spec import Form, Raw, Spec
from jaxfair.types import Examples, Key, Labels

COLORS = ("red", "green", "blue", "yellow", "magenta", "cyan")
RGB = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]], np.uint8)
AGREEMENT = 0.75
SEED = 0


def color(dataset: Dataset, *, agreement: float, num_groups: int = 2, key: Key) -> Dataset:
  """Paints gray images; the color becomes the group.

  favorite(y) = floor(y num_groups / num_classes)
  Pr[group = favorite(y)] = agreement, each other color equally likely

  `agreement = 1 / num_groups` makes color and label independent.

  Args:
    dataset: gray images [n, h, w, 1].
    agreement: share of people who have the favorite color of their class.
    num_groups: number of colors, 2 to 6.
    key: used once.

  Returns:
    Images [n, h, w, 3] in which the color is visible, so a model sees the group.

  Reference:
    Arjovsky et al., Invariant risk minimization, 2019, section 5.2, which has
    two classes and flips labels as well; here labels stay true.
  """
  x, y, _ = dataset.examples
  checks.require(
    np.ndim(x) == 4 and np.shape(x)[-1] == 1,
    f"{dataset.name} has x of shape {np.shape(x)}; only gray images [n, h, w, 1] can be colored",
  )
  group = draw_colors(y, dataset.num_classes, agreement=agreement, num_groups=num_groups, key=key)
  return dataclasses.replace(
    dataset,
    name=f"colored_{dataset.name}",
    examples=Examples(paint(x, group), y, group),
    group_names=COLORS[:num_groups],
    source=_told(dataset.source, f"agreement {agreement}"),
  )


def draw_colors(
  y: Labels, num_classes: int, *, agreement: float, num_groups: int, key: Key
) -> np.ndarray:
  """[n] color ids that agree with the labels to the given degree."""
  checks.key("key", key)
  checks.number("agreement", agreement, low=0.0, high=1.0)
  checks.integer("num_groups", num_groups, low=2, high=len(COLORS))
  key_agree, key_other = jax.random.split(key)
  favorite = jnp.asarray(y) * num_groups // num_classes
  agrees = jax.random.bernoulli(key_agree, agreement, favorite.shape)
  # A step of 1 .. num_groups - 1 around the circle reaches every other color.
  step = jax.random.randint(key_other, favorite.shape, 1, num_groups)
  other = (favorite + step) % num_groups
  return np.asarray(jnp.where(agrees, favorite, other), np.int32)


def paint(gray: np.ndarray, group: np.ndarray) -> np.ndarray:
  """[n, h, w, 3]: each gray image in its color, same type of pixels."""
  bright = RGB[group].astype(gray.dtype)[:, None, None, :]
  painted = np.empty((*gray.shape[:-1], 3), gray.dtype)
  # One channel at a time: broadcasting over the short last axis is slow.
  for channel in range(3):
    painted[..., channel] = gray[..., 0] * bright[..., channel]
  return painted


def colored_spec(base: Spec) -> Spec:
  """The named set made of a gray one, with the seed that is fixed for it."""
  return dataclasses.replace(
    base,
    name=f"colored_{base.name}",
    source=_told(base.source, f"agreement {AGREEMENT}, seed {SEED}"),
    forms=tuple(form._replace(read=_painted(form, len(base.facts.classes))) for form in base.forms),
    groups={"color": _rules.values("color", {"0": COLORS[0], "1": COLORS[1]})},
  )


def _told(source: Provenance, how: str) -> Provenance:
  caution = f"colors are drawn by jaxfair ({how})"
  return dataclasses.replace(
    source, title=f"{source.title}, colored", cautions=(*source.cautions, caution)
  )


def _painted(form: Form, num_classes: int) -> Callable[[Files], Raw]:
  def read(found: Files) -> Raw:
    raw = form.read(found)
    assert raw.images is not None
    group = draw_colors(
      raw.table["class"].astype(np.int32),
      num_classes,
      agreement=AGREEMENT,
      num_groups=2,
      key=jax.random.key(SEED),
    )
    return raw._replace(
      table={**raw.table, "color": group.astype(np.float64)}, images=paint(raw.images, group)
    )

  return read


SPECS = tuple(colored_spec(base) for base in (images.DIGITS, images.MNIST, images.FASHION_MNIST))
