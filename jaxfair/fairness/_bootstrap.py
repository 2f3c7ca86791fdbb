"""Bootstrap intervals: what another sample of people might have shown.

The bootstrap draws n people with replacement. For a function of the confusion
tensor that IS one multinomial draw over its cells, so tables are drawn, not
rows: exact, and at a cost that does not depend on n. Losses and scores take
multinomial row weights, in chunks of bounded memory. The draws are made on the
host, in float64; the statistic is compiled once and vmapped over them.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.fairness import _inputs, _intervals, _resampling
from jaxfair.fairness._confusion import confusion_counts
from jaxfair.fairness._intervals import Interval, Kind
from jaxfair.types import ArrayLike, GroupsLike, Key, LabelsLike, PerPersonLike, PyTree


def bootstrap(
  metric: Callable[..., Any],
  y_true: LabelsLike,
  y_pred: LabelsLike,
  *,
  sensitive_features: GroupsLike,
  key: Key,
  num_draws: int = 1000,
  level: float = 0.95,
  kind: Kind = "percentile",
  num_classes: int | None = None,
  num_groups: int | None = None,
) -> Interval:
  """Bootstrap interval of a metric of predicted labels.

  Args:
    metric: a function `(y_true, y_pred, *, sensitive_features, sample_weight,
      num_classes, num_groups)` such as `equalized_odds_difference`, `by_group`
      or a `functools.partial` of one. It may return a pytree.
    y_true: [n] class ids.
    y_pred: [n] predicted class ids.
    sensitive_features: [n] group ids.
    key: used once.
    num_draws: number of draws.
    level: coverage.
    kind: "percentile", "basic" or "bca" (see `interval_of_draws`).
    num_classes: number of classes; by default the largest id plus one.
    num_groups: number of groups; by default the largest id plus one.

  Returns:
    The interval. Draws in which the metric is NaN, because they leave a group
    empty, are dropped and counted.

  Assumptions:
    People are independent. A gap is never negative, so an interval of a gap
    that is truly 0 lies above it.
  """
  _inputs.on_host("bootstrap", y_true, y_pred, sensitive_features)
  counts = confusion_counts(
    y_true,
    y_pred,
    sensitive_features=sensitive_features,
    num_classes=num_classes,
    num_groups=num_groups,
  )
  return bootstrap_counts(
    _of_counts(metric, counts.shape[0], counts.shape[1]),
    counts,
    key=key,
    num_draws=num_draws,
    level=level,
    kind=kind,
  )


def bootstrap_counts(
  statistic: Callable[[jax.Array], Any],
  counts: ArrayLike,
  *,
  key: Key,
  num_draws: int = 1000,
  level: float = 0.95,
  kind: Kind = "percentile",
) -> Interval:
  """Bootstrap interval of a function of a table of counts.

  table ~ Multinomial(n, counts / n), n = sum counts

  Args:
    statistic: takes a table shaped like `counts`, may return a pytree. It is
      compiled once per function object: define it once.
    counts: whole numbers of people, one cell per kind of person.
    key: used once.
    num_draws: number of draws.
    level: coverage.
    kind: as in `bootstrap`.

  Returns:
    The interval.
  """
  _inputs.on_host("bootstrap_counts", counts)
  generator = _check(key, num_draws, level, kind)
  counts = np.asarray(counts)
  checks.require(
    bool(np.all(counts >= 0) and np.all(counts == np.round(counts))),
    "counts must be whole numbers of 0 or above; use bootstrap_rows for weighted people",
  )
  checks.require(bool(counts.sum() > 0), "counts has nobody in it; pass at least one person")
  run = _of_table(statistic)
  tables = _resampling.tables(generator, counts, num_draws)
  values = _evaluate(run, (), tables, num_draws + 1)
  estimate = jax.tree.map(lambda leaf: leaf[0], values)
  draws = jax.tree.map(lambda leaf: leaf[1:], values)
  slopes = None
  if kind == "bca":
    slopes = _slopes(run, (), counts.astype(np.float32))
  return _interval(estimate, draws, level, kind, slopes, counts)


def bootstrap_rows(
  metric: Callable[..., Any],
  *columns: Any,
  sensitive_features: GroupsLike,
  key: Key,
  num_draws: int = 1000,
  level: float = 0.95,
  kind: Kind = "percentile",
  sample_weight: PerPersonLike | None = None,
  num_groups: int | None = None,
) -> Interval:
  """Bootstrap interval of a metric of losses, scores or weighted people.

  Person i is drawn W_i times, W ~ Multinomial(n, 1 / n), and gets the weight
  W_i sample_weight_i.

  Args:
    metric: a function `(*columns, *, sensitive_features, sample_weight,
      num_groups)` such as `mean_loss` or `wasserstein_disparity`. A metric of
      labels needs its number of classes first:
      `functools.partial(accuracy, num_classes=2)`. Two models on the same
      people are compared by a function of three columns, y_true and both
      predictions.
    *columns: [n, ...] one row per person.
    sensitive_features: [n] group ids.
    key: used once.
    num_draws: number of draws.
    level: coverage.
    kind: as in `bootstrap`.
    sample_weight: [n] weights, or None for one each.
    num_groups: number of groups; by default the largest id plus one.

  Returns:
    The interval.
  """
  _inputs.on_host("bootstrap_rows", columns, sensitive_features, sample_weight)
  generator = _check(key, num_draws, level, kind)
  columns = tuple(_inputs.as_array(column) for column in columns)
  named = {f"column {i}": column for i, column in enumerate(columns)}
  group, num_groups, base = _inputs.groups(sensitive_features, num_groups, sample_weight, **named)
  size = group.shape[0]
  checks.require(size > 0, "there is nobody to draw; pass at least one person")
  run = _of_rows(metric, num_groups)
  ones = np.ones(size, np.float32)
  arguments = (columns, group, ones if base is None else base)
  # Outside jit the metric's own checks see the values.
  estimate = jax.tree.map(np.asarray, run(arguments, ones))
  weights = _resampling.row_weights(generator, size, num_draws)
  draws = _evaluate(run, arguments, weights, num_draws)
  slopes = _slopes(run, arguments, ones) if kind == "bca" else None
  return _interval(estimate, draws, level, kind, slopes, ones)


# A run is a function (arguments, weights) -> statistic. It is cached so that
# jit, which compiles once per function object, recognizes it the next time.
_Run = Callable[[Any, Any], Any]


@functools.lru_cache(maxsize=128)
def _of_counts(
  metric: Callable[..., Any], num_groups: int, num_classes: int
) -> Callable[[jax.Array], Any]:
  """The metric as a function of a confusion tensor: one weighted row a cell."""
  cells = np.indices((num_groups, num_classes, num_classes), np.int32)
  group, y_true, y_pred = cells.reshape(3, -1)

  def statistic(counts: jax.Array) -> PyTree:
    return metric(
      y_true,
      y_pred,
      sensitive_features=group,
      sample_weight=jnp.ravel(counts),
      num_classes=num_classes,
      num_groups=num_groups,
    )

  return statistic


@functools.lru_cache(maxsize=128)
def _of_table(statistic: Callable[[jax.Array], Any]) -> _Run:
  return lambda _, table: statistic(table)


@functools.lru_cache(maxsize=128)
def _of_rows(metric: Callable[..., Any], num_groups: int) -> _Run:
  def run(arguments: PyTree, weights: PyTree) -> PyTree:
    columns, group, base = arguments
    return metric(
      *columns, sensitive_features=group, sample_weight=weights * base, num_groups=num_groups
    )

  return run


@functools.partial(jax.jit, static_argnums=0)
def _compiled(run: _Run, arguments: PyTree, weights: PyTree) -> PyTree:
  return jax.vmap(lambda w: _floats(run(arguments, w)))(weights)


@functools.partial(jax.jit, static_argnums=0)
def _slopes(run: _Run, arguments: PyTree, weights: PyTree) -> PyTree:
  """Derivatives of the statistic by the weights, one set per output."""
  return jax.jacrev(lambda w: _floats(run(arguments, w)))(weights)


def _evaluate(run: _Run, arguments: PyTree, weights: Iterable[np.ndarray], number: int) -> PyTree:
  """The first `number` values of the statistic, chunk by chunk."""
  chunks = [jax.tree.map(np.asarray, _compiled(run, arguments, chunk)) for chunk in weights]
  return jax.tree.map(lambda *c: np.concatenate(c)[:number], *chunks)


def _floats(values: Any) -> PyTree:
  return jax.tree.map(lambda leaf: jnp.asarray(leaf, float), values)


def _check(key: jax.Array, num_draws: int, level: float, kind: Kind) -> np.random.Generator:
  checks.key("key", key)
  checks.integer("num_draws", num_draws, low=2, remedy="1000 is usual")
  _intervals.check_options(level, kind)
  return _resampling.generator_of(key)


def _interval(
  estimate: Any, draws: Any, level: float, kind: Kind, slopes: Any, people: np.ndarray
) -> Interval:
  # tree.map leaves None, for the kinds that need no slopes, as it is.
  acceleration = jax.tree.map(
    lambda slope: _acceleration(np.asarray(slope, np.float64), people), slopes
  )
  return _intervals.interval_of_draws(
    estimate, draws, level=level, kind=kind, acceleration=acceleration
  )


def _acceleration(slopes: np.ndarray, people: np.ndarray) -> np.ndarray:
  """Skewness of the empirical influence values over 6 sqrt(n).

  U_i = slope_i - mean slope;  sum U^3 / (6 (sum U^2)^1.5)
  """
  slopes = slopes.reshape(*slopes.shape[: slopes.ndim - people.ndim], -1)
  people = people.ravel()
  influence = slopes - (slopes @ people / people.sum())[..., None]
  cubes, squares = influence**3 @ people, influence**2 @ people
  return cubes / (6 * np.where(squares > 0, squares, 1.0) ** 1.5)
