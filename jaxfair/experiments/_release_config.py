"""The settings of a release: who, by which method, at what cost, on how many devices."""

import dataclasses
from typing import Annotated, Any, Literal, TypeAlias

import jax
import numpy as np

from jaxfair import _schema, checks, data, methods
from jaxfair._fields import NonNegative, Positive, Probability, Settings, Within
from jaxfair.accounting import Budget
from jaxfair.data import Dataset
from jaxfair.experiments._people import People
from jaxfair.experiments._population import (
  Buy,
  Parted,
  Scaling,
  buy_scaling,
  dry,
  load_public,
  part_people,
)
from jaxfair.experiments._stored_people import MOST_TEST, StoredPeople
from jaxfair.methods import _recipe
from jaxfair.methods._releasing import require_scale
from jaxfair.training._budget import shards_for
from jaxfair.types import Examples

Anybody: TypeAlias = Dataset | StoredPeople
Devices: TypeAlias = int | Literal["all"] | None


class ReleaseConfig(Settings):
  """What is released, from which people, at what cost.

  Attributes:
    method: a name in `methods.METHODS`.
    epsilon: what may be spent on the model, the preparation of its features included.
    delta: the same; None takes the largest power of ten below a tenth of 1 / n.
    settings: settings of the method; see its settings class.
    data: the people.
    public: who of them is taken to be public, as a share (below 1) or as a number: features are
      scaled by theirs, and methods that need public people get them.
    public_csv: a file of public people with the same columns, instead.
    scaling: where means and ranges of the features come from: "public" people, "declared" ranges,
      or "private": what is not declared is bought from the budget. "auto" takes public people if
      there are any, else "private".
    test: whom the model is measured on, as a share or a number. All others are protected.
    split_seed: decides who is public, protected and test.
    figures_epsilon: buys figures of the test people that may be published, for this much more.
    intended_use: for the model card.
    dataset_ledger: whether the release is charged to the ledger of its data set.
    devices: how many devices share the training, or "all" that can; None for one.
  """

  epsilon: Positive
  method: str = "dp_sgd"
  delta: Probability | None = None
  settings: dict[str, Any] = dataclasses.field(default_factory=dict)
  data: People = People()
  public: NonNegative = 0.0
  public_csv: str | None = None
  scaling: Scaling = "auto"
  test: Positive = 0.2
  split_seed: Annotated[int, Within(0)] = 0
  figures_epsilon: Positive | None = None
  intended_use: str = ""
  dataset_ledger: bool = True
  devices: Devices = None

  def check(self) -> None:
    """Raises for what cannot be released, and for settings that the method does not have."""
    checks.one_of("method", self.method, [n for n, m in methods.METHODS.items() if m.protects])
    disk, devices = self.data.source is not None, self.devices is not None
    require_scale(methods.get(self.method), disk=disk, devices=devices)
    checks.require(
      not disk or not self.public,
      "public is a share of people in memory; name a file of public people (public_csv)",
    )
    checks.require(
      not disk or self.scaling != "public" or self.public_csv is not None,
      "scaling='public' needs public people; name a file of them (--public FILE)",
    )
    checks.require(
      self.public_csv is None or not self.public,
      "public_csv and public are both set; public people are one or the other",
    )
    self.method_settings()

  def method_settings(self) -> Any:
    """The settings of the method, checked."""
    return _schema.build(methods.get(self.method).settings, self.settings, where="settings.")

  def parts(self, size: int) -> tuple[int, int, int]:
    """Numbers of public, protected and test people among all."""
    public, test = (round(p * size) if p < 1 else int(p) for p in (self.public, self.test))
    checks.require(
      (public > 0 or not self.public) and test > 0 and public + test < size,
      f"public={self.public:g} and test={self.test:g} of {size} people leave a part empty; "
      "change them",
    )
    return public, size - public - test, test

  def parted(
    self, people: Anybody, name: str, *, buy: Buy = dry, key: jax.Array | None = None
  ) -> Parted:
    """The people of a method, split by the key or else by `split_seed`.

    `buy` buys the scaling, if it must be bought.
    """
    key = jax.random.key(self.split_seed) if key is None else key
    method, public = methods.get(name), None
    if isinstance(people, StoredPeople):
      return self._parted_on_disk(people, None if method.protects is None else people, buy, key)
    if self.public_csv is not None:
      public, people = load_public(self.data, self.public_csv)
    return part_people(
      people,
      method,
      None if method.protects is None else self.budget(people),
      fractions=self.parts(people.size),
      public=public,
      scaling=self.scaling,
      buy=buy,
      key=key,
    )

  def _parted_on_disk(
    self, people: StoredPeople, paying: StoredPeople | None, buy: Buy, key: jax.Array
  ) -> Parted:
    """Scaled by public people, by declared ranges, or by what is bought for the release.

    A baseline, which pays nothing, is given the same features.
    """
    public = None
    if self.public_csv is not None:
      public = data.from_csv(self.public_csv, encoder=people.encoder).examples
    rows, test = people.parts(min(MOST_TEST, self.parts(people.size)[2]), key=key)
    made, rest = self._prepared_on_disk(people, rows, public, buy)
    population = people.population(rows, made, public)
    budget = None if paying is None else rest
    return Parted(population, test._replace(x=test.x[:, made.kept]), budget, made.event)

  def _prepared_on_disk(
    self, people: StoredPeople, test_rows: np.ndarray, public: Examples | None, buy: Buy
  ) -> tuple[methods.Preprocessing, Budget]:
    budget = self.budget(people)
    if self.scaling == "declared":
      return methods.Preprocessing.declared(people.encoder), budget
    if self.scaling != "private" and public is not None:
      return methods.Preprocessing.public(people.encoder, public.x), budget
    private = people.unscaled(test_rows)
    return buy_scaling(people.encoder, methods.get(self.method), budget, buy, private)

  def budget(self, people: Anybody) -> Budget:
    """What may be spent on the model."""
    usual = _recipe.default_delta(people.size)
    delta = self.delta or usual
    checks.require(
      delta <= 1 / people.size,
      f"delta={delta:g} would allow publishing whole records of {people.size} people; use at "
      f"most {usual:g}, or leave it out",
    )
    return Budget(self.epsilon, delta)

  def plan(self, parted: Parted) -> methods.Plan:
    """What the method will do to these people."""
    sizes, settings = parted.population.sizes, self.method_settings()
    if self.devices is not None:
      settings = _recipe.fill(settings, shards=shards_for(sizes.private))
    return methods.get(self.method).plan(settings, sizes, parted.budget)

  def mesh(self, plan: methods.Plan) -> jax.sharding.Mesh | None:
    """The devices that share the training of a plan."""
    if self.devices is None:
      return None
    # As many of every process: each of them holds its part of the people.
    hosts, shards = jax.process_count(), plan.settings.shards
    there = [[d for d in jax.devices() if d.process_index == host] for host in range(hosts)]
    most = hosts * min(map(len, there))
    fitting = [n for n in range(hosts, most + 1, hosts) if shards % n == 0]
    checks.require(
      bool(fitting),
      f"{hosts} hosts cannot share {shards} shards of people equally; use a number of hosts that "
      f"divides {shards}, or settings.{self.method}.shards = {-(-shards // hosts) * hosts}",
    )
    count = fitting[-1] if self.devices == "all" else self.devices
    checks.require(
      count in fitting,
      f"devices={count} of {most} cannot share {shards} shards of people equally"
      f"{'' if hosts == 1 else f' on {hosts} hosts'}; use {', '.join(map(str, fitting))} or all",
    )
    assert isinstance(count, int)
    chosen = [device for own in there for device in own[: count // hosts]]
    return jax.sharding.Mesh(np.array(chosen), ("people",))
