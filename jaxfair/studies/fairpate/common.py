"""What the FairPATE studies share: people, their votes, and plans of the methods compared.

A repetition is a split of the people with teachers of its own.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _fields, accounting, checks, data, methods, pate
from jaxfair import experiments as ex
from jaxfair.data._pooling import pool_images
from jaxfair.experiments import Count, Positive, _study
from jaxfair.experiments._config import plain
from jaxfair.experiments._people import set_name
from jaxfair.fairness import CounterRule
from jaxfair.methods import _method
from jaxfair.methods._pate_settings import TeacherSettings
from jaxfair.methods._teachers import Pate
from jaxfair.pate._fair import Choice, FairAnswers
from jaxfair.studies.fairpate.charging import SOUND
from jaxfair.types import Examples

NO_MARGIN = 2.0  # no disparity reaches it
PLAIN = "plain"
Whole = Annotated[int, _fields.Within(0)]


class Ensemble(TeacherSettings):
  """Settings of all studies of this package, those of teachers and students included."""

  data: ex.People = ex.People()
  pool: Count = 1  # images are averaged over squares with sides of this many pixels
  hidden: tuple[Count, ...] = (32,)
  num_teachers: Count = 100
  queries: Count = 1000  # people taken to be public; the scaler is fitted on them
  private_people: Count = 20_000  # dealt to the teachers; DP-SGD learns from them, too
  test_people: Count = 2000
  sigma_threshold: Positive = 40.0  # sigma1 of the paper
  sigma_answer: Positive = 15.0  # sigma2 of the paper
  min_count: Whole = 50  # M, answers of a group before it can be refused
  disparity: Literal["rest", "pairwise", "overall"] = "rest"
  guard: Literal["table", "own"] = "own"  # the paper's; "table" keeps all disparities below
  delta: ex.Probability = 1e-5
  batch_size: Count = 32
  learning_rate: Positive = 0.01
  weight_decay: ex.NonNegative = 1e-3
  row_norm: ex.NonNegative = 0.0
  seeds: Count = 20  # repetitions, each with its own split, teachers and noise

  def check(self) -> None:
    """Every teacher has people of its own, and batches come from the queries."""
    super().check()
    remedy = "every teacher learns from people of its own (private_people)"
    checks.integer("num_teachers", self.num_teachers, high=self.private_people, remedy=remedy)
    checks.integer("batch_size", self.batch_size, high=self.queries)

  @property
  def sizes(self) -> tuple[int, int, int]:
    """Numbers of public, private and test people."""
    return self.queries, self.private_people, self.test_people

  def rule(self, max_gap: Any) -> CounterRule:
    """The counter rule with this margin."""
    return CounterRule(max_gap, self.min_count, self.disparity, self.guard)


class OneThreshold(Ensemble):
  """Settings of the studies that train students, with one threshold T in votes."""

  threshold: float = 50.0
  sgd_batch: Count = 256  # expected batch of DP-SGD
  sgd_learning_rate: Positive = 2.0  # with momentum and rows of norm 1
  l2_clip: Positive = 1.0
  public_sample: Count = 256  # public people that a penalty looks at in a step

  def check(self) -> None:
    """The threshold can be reached, and a batch comes from the private people."""
    super().check()
    remedy = "no vote of so few teachers would reach it"
    checks.number("threshold", self.threshold, low=0.0, high=self.num_teachers, remedy=remedy)
    checks.integer("sgd_batch", self.sgd_batch, high=self.private_people)


class Method(NamedTuple):
  """The properties that distinguish a method of the comparison."""

  name: str  # in the table of methods
  voted: bool = True  # it learns from labels that teachers voted on
  fair_labels: bool = False  # which keep the margin
  abstains: bool = False  # it keeps the margin at inference, by abstaining
  has_lam: bool = False  # it has a penalty on the disparity
  mended: bool = False  # its students are calibrated on public people instead
  choice: Choice = "any"  # FairPATE's argmax, over "any" or the "allowed" classes
  placement: str = "after"  # of FairDP-SGD's penalty

  @property
  def route(self) -> tuple[str, ...]:
    """Methods of a route are trained as one program."""
    students = {"confident_pate": "pate", "fairpate": "pate", "pate_s_pre": "pate"}
    return students.get(self.name, self.name), self.placement, "mended" if self.mended else ""


METHODS = {
  PLAIN: Method("plain", voted=False),  # without privacy
  "pate": Method("confident_pate"),
  "fairpate": Method("fairpate", fair_labels=True, abstains=True),
  "fairpate_allowed": Method("fairpate", fair_labels=True, abstains=True, choice="allowed"),
  "fairpate_calibrated": Method("fairpate", fair_labels=True, has_lam=True, mended=True),
  "pate_s_pre": Method("pate_s_pre", fair_labels=True, abstains=True),
  "pate_s_in": Method("pate_s_in", abstains=True, has_lam=True),
  "fair_soft_pate": Method("fair_soft_pate", voted=False, abstains=True),
  "dp_sgd": Method("fair_dp_sgd", voted=False),  # with a penalty of weight 0
  "fair_dp_sgd": Method("fair_dp_sgd", voted=False, abstains=True, has_lam=True),
  "fair_dp_sgd_inside": Method(
    "fair_dp_sgd", voted=False, abstains=True, has_lam=True, placement="inside"
  ),
}


class Point(NamedTuple):
  """One setting of one method; NaN for what the method does not have."""

  method: str
  epsilon: float
  max_gap: float = np.nan
  lam: float = np.nan
  charge: str = SOUND  # for labels that teachers voted on; see `charging`

  @property
  def kind(self) -> Method:
    """The method's row of the table."""
    return METHODS[self.method]

  def settings(self, config: OneThreshold, **changes: Any) -> Any:
    """Of the method; `changes` are some of them."""
    own = methods.get(self.kind.name)
    told: dict[str, Any] = {
      **vars(config),
      **self.kind._asdict(),
      "threshold": config.threshold / config.num_teachers,
      "test_ratio": config.sigma_threshold / config.sigma_answer,
      "max_gap": NO_MARGIN if np.isnan(self.max_gap) else self.max_gap,
      "lam": np.nan_to_num(self.lam),
      "sample": min(config.public_sample, config.queries),
    }
    if "sgd" in self.kind.name:
      linear = config.network == "logistic"
      told |= {"learning_rate": config.sgd_learning_rate, "batch_size": config.sgd_batch}
      told |= {"steps": getattr(config, "sgd_steps", None), "optimizer": "momentum"}
      told |= {"row_norm": 1.0 if linear else 0.0}
    if self.kind.name == "fair_soft_pate":
      told["num_teachers"] = None  # more of them, by the method's own rule
    if self.method == PLAIN:
      told |= {"batch_size": config.sgd_batch, "steps": 500}
    told |= changes
    fields = [field.name for field in dataclasses.fields(own.settings)]
    return own.settings(**{name: told[name] for name in fields if name in told})

  def plan(self, config: OneThreshold, sizes: _method.Sizes, **changes: Any) -> methods.Plan:
    """What the method would be released by; `changes` are settings."""
    budget = None if self.method == PLAIN else accounting.Budget(self.epsilon, config.delta)
    return methods.get(self.kind.name).plan(self.settings(config, **changes), sizes, budget)


def release(config: OneThreshold, at: Mapping[str, Any]) -> dict[str, Any] | None:
  """The `[release]` table of a point; None where no method of the registry does that.

  All people who are neither queries nor test are protected, so teachers see more people than in
  the study.
  """
  given = {name: at[name] for name in ("max_gap", "lam") if at.get(name) is not None}
  point = Point(str(at["method"]), float(at["epsilon"]), **given)
  if point.method == PLAIN or point.kind.mended or config.pool > 1:
    return None
  name = "dp_sgd" if point.method == "dp_sgd" else point.kind.name
  known = {field.name for field in dataclasses.fields(methods.get(name).settings)}
  settings = plain(point.settings(config))
  return {
    "method": name,
    "epsilon": point.epsilon,
    "delta": config.delta,
    "settings": {key: value for key, value in settings.items() if key in known},
    "data": plain(_wanted(config, at.get("data"))),
    "public": config.queries,
    "test": config.test_people,
  }


class Repetition(NamedTuple):
  """One split: the public and the private people, and those that measure."""

  config: Any
  people: data.Dataset
  population: methods.Population
  test: Examples

  @property
  def public(self) -> Examples:
    """The queries."""
    assert self.population.public is not None
    return self.population.public

  def votes(self, *, key: jax.Array) -> np.ndarray:
    """[queries, C] votes of teachers of the private people on the public ones."""
    fields = {name: getattr(self.config, name) for name in TeacherSettings.__dataclass_fields__}
    budget = accounting.Budget(1.0, self.config.delta)  # plays no part: no label is drawn
    plan = Pate().plan(TeacherSettings(**fields), self.population.sizes, budget)
    return Pate().votes(plan, self.population, key=key)

  def phases(
    self, votes: np.ndarray, settings: Sequence[Any], choice: Choice, *, key: jax.Array
  ) -> list[FairAnswers]:
    """The query phase without a budget for each (threshold, margin), with the same noise."""
    fixed = (self.config, self.people.num_groups, choice)
    found = _ask(*fixed, votes, self.public.group, jnp.asarray(settings, jnp.float32), key)
    host = jax.tree.map(np.asarray, found)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], host) for i in range(len(settings))]


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _ask(
  config: Ensemble,
  num_groups: int,
  choice: Choice,
  votes: Any,
  groups: Any,
  settings: jax.Array,
  key: jax.Array,
) -> FairAnswers:
  def one(threshold: jax.Array, max_gap: jax.Array) -> FairAnswers:
    return pate.fair_gnmax(
      votes,
      groups,
      num_groups=num_groups,
      threshold=threshold,
      sigma_threshold=config.sigma_threshold,
      sigma_answer=config.sigma_answer,
      choice=choice,
      key=key,
      **vars(config.rule(max_gap)),
    )._replace(sigma_threshold=None, sigma_answer=None, max_rho=None)

  return jax.vmap(one)(*settings.T)


def split(config: Ensemble, cell: _study.Cell, context: _study.Context) -> Repetition:
  """Splits the people of a cell; no teacher is asked."""
  people = context.load(_wanted(config, cell.get("data")))
  x = pool_images(np.asarray(people.examples.x), config.pool)
  people = dataclasses.replace(people, examples=people.examples._replace(x=x))
  key = jax.random.fold_in(context.shared_key, int(cell["seed"]))
  made = data.prepare(people, config.sizes, key=key)
  test = jax.tree.map(jax.numpy.asarray, made.parts[2])
  return Repetition(config, people, methods.Population.prepared(made), test)


def study(name: str, summary: str, config: type, run: Any, **more: Any) -> ex.Study:
  """A study with one cell per repetition."""
  return ex.Study(name, summary, config, _cells, run, precheck=_check, **more)


def _wanted(config: Ensemble, name: object) -> ex.People:
  """The people of this name; the config's first ones without a name."""
  sets = {set_name(one): one for one in _study.people_of(config)}
  return sets.get(str(name), config.data)


def _cells(config: Ensemble) -> list[_study.Cell]:
  sets = [set_name(one) for one in _study.people_of(config)]
  named = [{"data": name} for name in sets] if len(sets) > 1 else [{}]
  return [{**one, "seed": seed} for one in named for seed in range(config.seeds)]


def _check(config: Ensemble, *sets: data.Dataset) -> None:
  needed = sum(config.sizes)
  for people in sets:
    shape = np.shape(people.examples.x)[1:]
    checks.require(
      needed <= people.size,
      f"queries, private_people and test_people add up to {needed}, but {people.name} has "
      f"{people.size} people; lower private_people",
    )
    checks.require(
      config.network != "convnet" or len(shape) == 3,
      f"network='convnet' needs images, but {people.name} has people of shape {shape}; use "
      "network = 'mlp'",
    )
