"""The available ways from noisy counts to decisions, and how each affects every place.

A user's rule is plain Python and cannot be compiled: noise and post-processing are compiled, for
many draws at once, and the rule is called once per draw.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from scipy import special

from jaxfair import checks
from jaxfair.decisions import _postprocess, _proxies, _remedies
from jaxfair.decisions._bias import NonPrivateBias
from jaxfair.decisions._function_values import Problem, as_tree, identity, in_float64, wide
from jaxfair.decisions._mechanisms import LaplaceRelease, Mechanism, on_counts
from jaxfair.types import Counts, Index, Key, Number

USUAL = "non-negative"
CHUNK_NUMBERS = 2**19  # of one chunk of draws, 4 MB
LOWER_SHARE = 0.9  # the public lower bound of a total, as a share of it
MOST_BINS, BIN_PLACES = 9, 5  # of the piece-wise linear stand-in
CLEANING = (USUAL, "as-released", "tempered")  # what is done to noisy counts under any rule
WAYS = {
  USUAL: "Counts below 0 are set to 0, as is usually done.",
  "as-released": "Noisy counts are used as they are, even below 0. A very small place may get "
  "a negative amount; carry that over to the next year.",
  "tempered": "Counts below 0 are set to 0 and small counts are lowered to make up for it.",
  "public-total": "Each place gets its noisy count's share of a total that is published anyway. "
  "The amounts then add up to the budget only on average.",
  "private-total": "Each place gets its noisy count's share of a noisy total. Half of the privacy "
  "budget pays for the total.",
  "noisy-shares": "The noise is added to the amounts instead of the counts.",
  "piecewise-linear": "A simpler rule, learned from a first noisy release, decides on a second.",
}


class Way(NamedTuple):
  """From true counts to outcomes: a mechanism, and a rule that runs in Python or None."""

  mechanism: Mechanism
  host: Callable[[list[np.ndarray]], np.ndarray] | None = None


class NonPrivateCase(NamedTuple):
  """A rule on true counts; for the agency's own eyes.

  Attributes:
    counts: [n] array, or a tuple of them.
    truth: [n] amounts or decisions on the true counts.
    names: of the ways that this rule has; the usual one first.
    way: from a name and an epsilon to the way.
  """

  counts: Counts
  truth: np.ndarray
  names: tuple[str, ...]
  way: Callable[[str, float], Way]

  @property
  def is_rule(self) -> bool:
    """Whether outcomes are decisions."""
    return bool(self.truth.dtype == bool)


def sharing_case(
  counts: np.ndarray, weights: np.ndarray, *, lower_share: float = LOWER_SHARE
) -> NonPrivateCase:
  """Shares in proportion to weight times count (Title I), with its remedies.

  Args:
    counts: [n].
    weights: [n].
    lower_share: the public lower bound of the weighted total, as a share of it.
  """
  problem = _remedies.allotment(weights)
  truth = weights * counts / np.sum(weights * counts)
  total = float(weights @ counts)
  bounds = {"max_weight": float(weights.max()), "lower_total": lower_share * total}

  def way(name: str, epsilon: float) -> Way:
    own: dict[str, Any] = {"weights": weights, "epsilon": epsilon}
    match name:
      case "public-total":
        return Way(_remedies.linear_proxy(total=total, **own))
      case "private-total":
        return Way(_remedies.linear_proxy_private(**bounds, **own))
      case "noisy-shares":
        return Way(_remedies.output_perturbation(**bounds, **own))
    release = LaplaceRelease.for_epsilon(epsilon)
    clean = _cleaning(name, float(release.scale))
    return Way(on_counts(Partial(_then, problem, clean), release))

  names = (*CLEANING, "public-total", "private-total", "noisy-shares")
  return NonPrivateCase(counts, truth, names, way)


def rule_case(
  rule: Callable[..., np.ndarray], counts: tuple[np.ndarray, ...], *, key: Key
) -> NonPrivateCase:
  """A rule in Python; one person may be in every one of the k counts of a place.

  Args:
    rule: from k arrays to [n] amounts or decisions; takes `told`, for its messages.
    counts: k arrays of [n] true counts.
    key: for the release that a stand-in for a decision rule is learned from.
  """
  truth = rule(list(counts))
  bins = min(MOST_BINS, len(truth) // BIN_PLACES)
  # One person is in each of the k counts of a place at most once.
  sensitivity = len(counts)

  def way(name: str, epsilon: float) -> Way:
    def host(noisy: list[np.ndarray]) -> np.ndarray:
      found = rule(noisy, told=f"noisy counts at epsilon {epsilon:g}")
      checks.require(
        (found.dtype == bool) == (truth.dtype == bool),
        "rule returns booleans for some counts and numbers for others; return one kind",
      )
      return found

    if name != "piecewise-linear":
      release = LaplaceRelease.for_epsilon(epsilon, sensitivity=sensitivity)
      return Way(on_counts(_cleaning(name, float(release.scale)), release), host)
    half = LaplaceRelease.for_epsilon(epsilon / 2, sensitivity=sensitivity)
    with jax.enable_x64(True):
      first = half(in_float64(counts), key=key)
    proxy = _proxies.fit_proxy(
      lambda noisy: jnp.asarray(host([np.asarray(one) for one in noisy])),
      first,
      learner=_proxies.linear_svm,
      by=0,
      num_bins=bins,
    )
    return Way(on_counts(proxy, half))

  more = ("piecewise-linear",) if truth.dtype == bool and bins > 1 else ()
  return NonPrivateCase(counts, truth, (*CLEANING, *more), way)


def simulate_way(
  case: NonPrivateCase, way: Way, *, draws: int, key: Key, regions: Any = None
) -> tuple[NonPrivateBias, NonPrivateBias | None]:
  """What one way does to every place, and to sums over regions.

  Every draw of the noise is used with both signs: whatever is linear in the noise cancels, so that
  small biases are seen. Standard errors are those of the independent pairs.
  """
  checks.integer("draws", draws, low=100)
  members = None if regions is None else np.eye(int(np.max(regions)) + 1)[np.asarray(regions)]
  truths = [case.truth.astype(np.float64)]
  if members is not None:
    truths.append(truths[0] @ members)
  sums: list[list[Any]] = [[0.0] * 4 for _ in truths]
  for pair in outcomes(case, way, draws=draws, key=key, mirrored=True):
    for i, (truth, own) in enumerate(zip(truths, (pair, _in(pair, members)), strict=False)):
      away = own - truth
      mean = away.mean(axis=0)
      parts = (mean, mean**2, np.abs(away).mean(axis=0), (away**2).mean(axis=0))
      sums[i] = [s + part.sum(axis=0) for s, part in zip(sums[i], parts, strict=True)]
  found = [
    _summary(truth, own, draws, case.is_rule) for truth, own in zip(truths, sums, strict=True)
  ]
  return found[0], found[1] if len(found) > 1 else None


def outcomes(
  case: NonPrivateCase, way: Way, *, draws: int, key: Key, mirrored: bool = False
) -> Iterator[np.ndarray]:
  """Yields [1, m, n] outcomes of m draws at a time; [2, m, n] with each noise's mirror image."""
  size = len(case.truth)
  chunk = int(min(draws, max(1, CHUNK_NUMBERS // size)))
  for start in range(0, draws, chunk):
    with jax.enable_x64(True):
      mechanism, counts = wide(way.mechanism), in_float64(case.counts)
      index = start + jnp.arange(chunk)
      drawn = _draw(mechanism, counts, key, index, mirrored=mirrored)
      drawn = jax.tree.map(np.asarray, drawn)
    count = min(chunk, draws - start)
    if way.host is None:
      found = np.asarray(drawn)[:, :count].astype(np.float64)
    else:
      found = np.array(
        [
          [way.host([column[sign, i] for column in drawn]) for i in range(count)]
          for sign in range(1 + mirrored)
        ],
        np.float64,
      )
    checks.require(
      bool(np.isfinite(found).all()),
      "the noise is larger than these counts: a noisy total of 0 cannot be shared; use a "
      "larger epsilon",
    )
    yield found


@jax.jit(static_argnames="mirrored")
def _draw(
  mechanism: Mechanism, counts: Counts, key: jax.Array, index: Index, *, mirrored: bool
) -> Counts:
  query = mechanism.query(counts)

  def one(i: Index) -> Any:
    noisy = mechanism.release(query, key=jax.random.fold_in(key, i))
    both = [noisy]
    if mirrored:
      both.append(jax.tree.map(lambda q, z: 2 * q - z, query, noisy))
    return jax.tree.map(lambda *own: jnp.stack(own), *map(mechanism.decide, both))

  return jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), jax.vmap(one)(index))


def _cleaning(name: str, scale: float) -> Any:
  if name == "tempered":
    return Partial(_temper, _postprocess.best_temperature(scale=scale))
  return as_tree(_non_negative if name == USUAL else identity)


def _non_negative(counts: Counts) -> Counts:
  return jax.tree.map(_postprocess.non_negative, counts)


def _temper(heat: Number, counts: Counts) -> Counts:
  return jax.tree.map(lambda own: _postprocess.temper(own, temperature=heat), counts)


def _then(problem: Problem, clean: Problem, counts: Counts) -> jax.Array:
  return problem(clean(counts))


def _in(pair: np.ndarray, members: np.ndarray | None) -> np.ndarray:
  return pair if members is None else pair @ members


def _summary(truth: np.ndarray, sums: list[Any], draws: int, is_rule: bool) -> NonPrivateBias:
  bias, square, error, variance = (own / draws for own in sums)
  spread = np.sqrt(np.maximum(square - bias**2, 0) / (draws - 1))
  if is_rule:  # no wrong decision in m draws does not mean that there never is one
    rate = (2 * draws * error + 2) / (2 * draws + 4)
    spread = np.maximum(spread, np.sqrt(rate * (1 - rate) / (2 * draws + 4)))
  variance = np.maximum(variance - bias**2, 0)
  return NonPrivateBias(truth, bias, spread, variance, error, 2 * draws, is_rule)


def clear_bias(found: NonPrivateBias) -> np.ndarray:
  """The part of each bias that a simulation tells apart from 0, all places at once.

  sign(B_i) max(0, |B_i| - z s_i), with z at 1 - 0.05 / (2 n) (Bonferroni)
  """
  z = special.ndtri(1 - 0.05 / (2 * len(found.bias)))
  # Rounding in float64 is not a bias.
  least = z * found.standard_error + 1e-12 * np.abs(found.truth).max()
  return np.asarray(np.sign(found.bias) * np.maximum(np.abs(found.bias) - least, 0))


def recommend(found: dict[str, NonPrivateBias], *, now: str = USUAL) -> str:
  """The way that harms least; the present one unless another is clearly better.

  Of amounts, the harm is what places clearly lose on average, in all; ways whose single releases
  err by 10% more than the usual one are left out. Of decisions it is the share of wrong ones.
  """
  usual = found[USUAL]
  if usual.is_rule:
    best = min(found, key=lambda name: float(found[name].error.mean()))
    margin = 3 * float(found[now].standard_error.mean() + found[best].standard_error.mean())
    return best if float(found[now].error.mean() - found[best].error.mean()) > margin else now
  harm = {
    name: -float(np.minimum(clear_bias(one), 0).sum())
    for name, one in found.items()
    if one.error.mean() <= 1.1 * usual.error.mean()
  }
  unit = max(harm[USUAL], 1e-12 * float(np.abs(usual.truth).max()))
  best = min(harm, key=lambda name: round(harm[name] / unit, 2))
  return best if harm.get(now, np.inf) > harm[best] + 0.1 * unit else now
