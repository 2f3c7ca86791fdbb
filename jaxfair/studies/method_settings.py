"""Settings of the study of methods: people, methods, budgets, and what is swept."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any

import jax

from jaxfair import _fields, _schema, checks, methods
from jaxfair import experiments as ex
from jaxfair.data import Dataset
from jaxfair.experiments._config import plain
from jaxfair.experiments._population import Buy, Parted, Scaling, dry
from jaxfair.experiments._release_config import Devices, ReleaseConfig
from jaxfair.methods import Plan

NOTHING: Mapping[str, float] = {}
SWEPT = {"lam": "lams", "max_gap": "max_gaps"}  # a method's setting: the key that sweeps it
PLAIN, MAJORITY, RELEASED = "plain", "majority_class", "released model"
PRIVATE = tuple(name for name, method in methods.METHODS.items() if method.protects)
MethodName = Annotated[str, _fields.OneOf(tuple(methods.METHODS))]


class Config(ex.Settings):
  """Settings of a comparison of methods.

  Attributes:
    data: the people.
    public_fraction: share of them who are taken to be public: the scaler is fitted on them, and
      methods that need public people ask about them.
    public_csv: a file of public people with the same columns, in place of a share.
    scaling: where means and ranges of the features come from. Fitted on the private part they
      would move everybody's features when one person changes, and no epsilon would hold. "public"
      people, "declared" ranges, or "private": what is not declared is bought from the budget.
      "auto" takes public people if there are any, else "private".
    test_fraction: share of them who are held out to measure on.
    methods: names in the registry; the plain model and the majority class come along.
    epsilons: budgets of every method.
    delta: delta of every budget; None takes the largest power of ten below a tenth of 1 / n.
    network: of all methods, and of the model without privacy.
    hidden: widths of its dense layers.
    settings: of single methods, by name; what is left out is chosen by the method's recipe.
    max_gaps: margins; each is a setting of every method that has `max_gap` and no `lam`.
    lams: weights; each is a setting of every method that has `lam`.
    release_method: of the model that is released; the first of `methods` if None.
    release_epsilon: its budget; None releases nothing.
    seeds: splits of the people, each with noise of its own.
    dataset_ledger: whether a release is charged to the ledger of its data set, too.
    intended_use: of the released model, in your words, for its card.
    devices: how many devices share the training of the released model, or "all"; None for one.
  """

  data: ex.People = ex.People()
  public_fraction: Annotated[float, _fields.Within(0.0, 0.9)] = 0.0
  public_csv: str | None = None
  scaling: Scaling = "auto"
  test_fraction: Annotated[float, _fields.Within(0.05, 0.9)] = 0.25
  methods: ex.Sweep[MethodName] = ("dp_sgd",)
  epsilons: ex.Sweep[ex.Positive] = (1.0,)
  delta: ex.Probability | None = None
  network: str = "logistic"
  hidden: tuple[ex.Count, ...] = (64,)
  settings: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
  max_gaps: tuple[ex.NonNegative, ...] = ()
  lams: tuple[ex.NonNegative, ...] = ()
  release_method: MethodName | None = None
  release_epsilon: ex.Positive | None = None
  seeds: ex.Count = 20
  dataset_ledger: bool = True
  intended_use: str = ""
  devices: Devices = None

  def check(self) -> None:
    """Somebody is left to train on, and every method knows its settings."""
    checks.positive(
      "1 - public_fraction - test_fraction", self.fractions[1], remedy="leave people to train on"
    )
    for name in (*self.methods, self.released_method):
      checks.require(
        name in PRIVATE,
        f"{name} is a baseline with no guarantee, and cannot be released; choose a private "
        "method, such as dp_sgd",
      )
    for name in self.settings:
      checks.one_of("settings", name, (*PRIVATE, PLAIN))
    for name in (PLAIN, *self.methods, self.released_method):
      self.method_settings(name)
    dataclasses.replace(self.priced(self.released_method, 1.0), devices=self.devices)

  @property
  def fractions(self) -> tuple[float, float, float]:
    """Public, private and test part."""
    rest = 1 - self.public_fraction - self.test_fraction
    return self.public_fraction, rest, self.test_fraction

  @property
  def released_method(self) -> str:
    """The method of the released model."""
    return self.release_method or self.methods[0]

  @property
  def scaled_by_share(self) -> bool:
    """Whether the features of all methods are scaled by the public share of the people."""
    return self.public_fraction > 0 and self.scaling in ("auto", "public")

  def variants(self, name: str) -> list[dict[str, float]]:
    """What is swept of a method's settings, one entry for each of its models."""
    known = methods.get(name).settings.__dataclass_fields__
    for own, key in SWEPT.items():
      if own in known and getattr(self, key):
        return [{own: value} for value in getattr(self, key)]
    return [{}]

  def method_settings(self, name: str, variant: Mapping[str, float] = NOTHING) -> Any:
    """The settings of a method, checked."""
    own = {"network": self.network, "hidden": list(self.hidden), **self.settings.get(name, {})}
    own |= variant
    return _schema.build(methods.get(name).settings, own, where=f"settings.{name}.")

  def priced(
    self, name: str, epsilon: float, variant: Mapping[str, float] = NOTHING, *, ledger: bool = False
  ) -> ReleaseConfig:
    """The release of a private method at this budget."""
    return ReleaseConfig(
      epsilon=epsilon,
      method=name,
      delta=self.delta,
      settings=plain(self.method_settings(name, variant)),
      data=self.data,
      public=self.public_fraction,
      public_csv=self.public_csv,
      scaling=self.scaling,
      test=self.test_fraction,
      intended_use=self.intended_use,
      dataset_ledger=ledger,
    )

  def parted(
    self,
    people: Dataset,
    name: str,
    epsilon: float,
    variant: Mapping[str, float] = NOTHING,
    *,
    key: jax.Array,
    buy: Buy = dry,
  ) -> tuple[Parted, Plan]:
    """People of a method, scaled as its guarantee allows, and what it will do to them."""
    own = self.priced(name, epsilon) if name in PRIVATE else self.priced(self.methods[0], 1.0)
    parted = own.parted(people, name, buy=buy, key=key)
    settings, sizes = self.method_settings(name, variant), parted.population.sizes
    return parted, methods.get(name).plan(settings, sizes, parted.budget)
