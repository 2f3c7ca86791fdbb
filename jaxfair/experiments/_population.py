"""From a data set to the people of a method: splits, with public or paid-for scaling."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from jaxfair import accounting, checks, data, methods
from jaxfair.accounting import Budget
from jaxfair.data import _scaling
from jaxfair.experiments._people import People, load_people
from jaxfair.methods import Method, Population, Preprocessing
from jaxfair.methods._preprocessing import PreprocessingPlan
from jaxfair.types import Examples

Scaling = Literal["auto", "declared", "public", "private"]
Buy = Callable[[PreprocessingPlan, Any], Preprocessing]  # from features, or people on disk

SHARE = 0.1  # of epsilon, for a scaler that is bought; delta is halved


class Parted(NamedTuple):
  """The people of a method, the test people, and the budget that is left.

  Attributes:
    population: public and private people, scaled.
    test: people with features as they were recorded: those that a released model takes.
    budget: of the method, without what was spent on scaling; None for a baseline.
    spent: what the scaling is charged as; None for nothing.
  """

  population: Population
  test: Examples
  budget: Budget | None
  spent: accounting.Event | None


def load_public(own: People, path: str) -> tuple[data.Dataset, data.Dataset]:
  """Public people of a file, and the private ones encoded as they are.

  Ranges and categories are those of the public file, so that encoding reveals nothing of the
  private people.
  """
  checks.require(
    own.csv is not None, f"public_csv={path!r} goes with a file of your own: name one in data.csv"
  )
  assert own.csv is not None
  public, _ = load_people(dataclasses.replace(own, csv=path))
  assert public.encoder is not None
  private = data.from_csv(own.csv, encoder=public.encoder, unit=own.unit, name=_name(own))
  return public, private


def part_people(
  people: data.Dataset,
  method: Method,
  budget: Budget | None,
  *,
  fractions: tuple[float, float, float],
  public: data.Dataset | None,
  scaling: Scaling,
  buy: Buy,
  key: jax.Array,
) -> Parted:
  """Splits people and prepares their features as the guarantee of a method allows.

  Args:
    people: of all parts, or of the private and the test part if `public` is given.
    method: whose guarantee is to hold. One that protects nothing, or groups alone, may fit a
      scaler on its own people.
    budget: what may be spent in all.
    fractions: of public, private and test people.
    public: people of another table, encoded as these.
    scaling: where means and ranges come from; "auto" takes public people, else declared ranges,
      else buys them.
    buy: buys what a plan asks for; it charges first if the result is to be released.
    key: for the split.
  """
  checks.require(
    people.unit is None or np.unique(people.unit).size == people.size,
    f"{people.name} has several rows of one person, and methods protect one row; keep one row of "
    "each person",
  )
  some = tuple(part for part in fractions if part > 0)
  rows = data.split_rows(people.size, some, key=key)
  *shared, private, test = (people.examples.take(part) for part in rows)
  known = public.examples if public is not None else (shared[0] if shared else None)
  kind = _kind(scaling, people, method, known)
  spent, rest = None, budget
  if kind == "bought":
    assert budget is not None
    made, rest = buy_scaling(_encoder(people), method, budget, buy, np.asarray(private.x))
    spent = made.event
  elif kind == "declared":
    made = Preprocessing.declared(_encoder(people))
  elif kind == "raw":
    made = _without_encoder(None, "the range of the features, which are used as they are")
  else:
    made = _fitted(people, private if kind == "own" or known is None else known)

  def ready(part: Examples) -> Examples:
    return part if made.scaler is None else part._replace(x=made.apply(part.x))

  population = Population(
    private=ready(private),
    public=None if known is None else ready(known),
    class_names=people.class_names,
    group_names=people.group_names,
    scaler=made.scaler,
    encoder=made.encoder,
    name=people.name,
    assumed_public=made.assumed_public,
    bought=spent,
  )
  return Parted(population, test._replace(x=test.x[:, made.kept]), rest, spent)


def buy_scaling(
  encoder: data.Encoder, method: Method, budget: Budget, buy: Buy, people: Any
) -> tuple[Preprocessing, Budget]:
  """Buys what the encoder does not declare, and says what is left of the budget."""
  assert method.relation is not None
  plan = methods.plan_preprocessing(
    encoder, epsilon=SHARE * budget.epsilon, delta=budget.delta / 2, relation=method.relation
  )
  if plan.event is None:
    return Preprocessing.declared(encoder), budget
  rest = Budget((1 - SHARE) * budget.epsilon, budget.delta / 2)
  return dataclasses.replace(buy(plan, people), event=plan.event), rest


def dry(plan: PreprocessingPlan, people: object) -> Preprocessing:
  """A stand-in for bought scaling, for a plan that computes nothing: it scales nothing."""
  del people
  ones = np.ones(len(plan.encoder.feature_names), np.float32)
  scaler = _scaling.Scaler(0 * ones, 0 * ones, 0 * ones, 1.0)
  return Preprocessing(plan.encoder, np.arange(ones.size), scaler, plan.marked.assumed_public())


def _kind(
  scaling: Scaling, people: data.Dataset, method: Method, public: Examples | None
) -> Literal["own", "public", "declared", "bought", "raw"]:
  if method.protects != "record":
    return "own"  # features are not protected
  if scaling == "public" or (scaling == "auto" and public is not None):
    checks.require(
      public is not None,
      "scaling='public' needs public people; name public_csv, or take a public_fraction",
    )
    return "public"
  if people.encoder is None:
    return "raw"
  return "declared" if scaling == "declared" else "bought"  # what is declared is not bought


def _fitted(people: data.Dataset, fitted_on: Examples) -> Preprocessing:
  if people.encoder is not None:
    return Preprocessing.public(people.encoder, fitted_on.x)
  told = f"the means and spreads of all features were taken from {len(fitted_on.y)} public people"
  return _without_encoder(data.fit_scaler(fitted_on.x), told)


def _without_encoder(scaler: _scaling.Scaler | None, told: str) -> Preprocessing:
  """For images and made-up people, who are arrays from the start."""
  made: Any = (None, slice(None), scaler, (told,))
  return Preprocessing(*made)


def _encoder(people: data.Dataset) -> data.Encoder:
  assert people.encoder is not None
  return people.encoder


def _name(own: People) -> str | None:
  return None if own.name == People().name else own.name
