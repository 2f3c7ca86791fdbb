"""The interface of a method, from people and a budget to a releasable model.

`plan` computes the cost, `fit` the model for a study, `release` the model for publication.
Everything that a method needs to know beforehand is public: sizes, settings and a budget.
"""

import dataclasses
import functools
import pathlib
from typing import Any, Literal, NamedTuple, Protocol

import jax
import numpy as np

from jaxfair import accounting, checks, data
from jaxfair._fields import Count, Settings
from jaxfair.data import _preparing, _scaling
from jaxfair.data._source_views import SourceView
from jaxfair.fairness import CounterRule
from jaxfair.fairness._known_labels import PARITY
from jaxfair.methods._released import Network, Released
from jaxfair.models import _networks
from jaxfair.pate._attribute import Protection
from jaxfair.types import Examples, Fit, Key, Model, PerExampleLoss, Source

PERSON = "one person"
SCALING = (
  "the scaling of features, which is taken to be public: fit it on public "
  "people or declare the ranges"
)


class NotReleasableError(checks.JaxfairError):
  """A model that no guarantee covers."""


class NetworkSettings(Settings):
  """Settings that every method has: which network is trained.

  Attributes:
    network: a name in `models.NETWORKS`.
    hidden: widths of its dense layers, where it has any to choose.
    width: channels of its first convolution; its own by default.
  """

  network: str = "logistic"
  hidden: tuple[Count, ...] = (64,)
  width: Count | None = None

  def check(self) -> None:
    """Raises for a network that nobody knows."""
    checks.one_of("network", self.network, _networks.NETWORKS)


class Sizes(NamedTuple):
  """What is public about the people before anything is computed.

  Attributes:
    private: number of private people, n.
    public: number of public people; 0 for none.
    shape: shape of one person's features.
    classes: C.
    groups: G.
  """

  private: int
  public: int
  shape: tuple[int, ...]
  classes: int
  groups: int


META = ("encoder", "name", "ledger", "assumed_public", "bought", "intended_use", "source", "mesh")


@functools.partial(
  jax.tree_util.register_dataclass,
  data_fields=["private", "public", "scaler"],
  meta_fields=["class_names", "group_names", *META],
)
@dataclasses.dataclass(frozen=True, eq=False)
class Population:
  """The people that a method trains on; a pytree.

  Attributes:
    private: the people who are protected.
    class_names: the name of class id 0, 1, ...
    group_names: the name of group id 0, 1, ...
    public: people whose features are public, and whose groups are where the
      method `needs` "public_groups". Their labels are read by notions of
      fairness other than demographic parity alone, and are public then.
    scaler: scaler of the features, also applied to new people; it must not have been fitted on
      private people.
    encoder: turns a table into features; part of a released model.
    name: name of the data set.
    ledger: of the data set, which releases are charged to; None charges the
      release's own ledger alone.
    assumed_public: sentences on what was assumed to be public in preparing the features; added to
      what the guarantee does not cover.
    bought: the event of what was released about the private people in preparing the features; it
      is part of the guarantee and must have been charged. None for nothing.
    intended_use: intended use of a released model, for its card.
    source: where the private people are read from, if they are on disk; `private` has their shapes
      alone then. For methods that scale to "disk".
    mesh: devices that share the training of a release, for methods that scale to "devices"; None
      for one.
  """

  private: Examples
  class_names: tuple[str, ...]
  group_names: tuple[str, ...]
  public: Examples | None = None
  scaler: _scaling.Scaler | None = None
  encoder: data.Encoder | None = None
  name: str = "private data"
  ledger: accounting.DatasetLedger | None = None
  assumed_public: tuple[str, ...] = ()
  bought: accounting.Event | None = None
  intended_use: str = ""
  source: Source | None = None
  mesh: jax.sharding.Mesh | None = None

  @classmethod
  def prepared(
    cls, prepared: _preparing.Prepared, *, ledger: accounting.DatasetLedger | None = None
  ) -> "Population":
    """From `data.prepare`: its first part is public, its second private.

    The scaler was fitted on the first part, so it reveals nothing about the
    second. A set with several rows of one person is refused: a guarantee for
    one person would not hold.
    """
    checks.require(
      len(prepared.parts) >= 2,
      "prepared has one part; split into a public and a private part, such as "
      "data.prepare(people, (0.2, 0.6, 0.2), key=key)",
    )
    own = prepared.dataset
    checks.require(
      own.unit is None or np.unique(own.unit).size == own.size,
      f"{own.name} has several rows of one person, and methods protect one "
      "row; keep one row of each person",
    )
    return cls(
      private=prepared.parts[1],
      class_names=own.class_names,
      group_names=own.group_names,
      public=prepared.parts[0],
      scaler=prepared.scaler,
      encoder=own.encoder,
      name=own.name,
      ledger=ledger,
      assumed_public=own.encoder.assumed_public() if own.encoder else (),
    )

  @property
  def people(self) -> Examples | Source:
    """The private people as trainers take them, in memory or on disk."""
    return self.private if self.source is None else self.source

  @property
  def sizes(self) -> Sizes:
    """What `plan` may use."""
    return Sizes(
      private=int(np.shape(self.private.y)[0]),
      public=0 if self.public is None else int(np.shape(self.public.x)[0]),
      shape=tuple(map(int, np.shape(self.private.x)[1:])),
      classes=len(self.class_names),
      groups=len(self.group_names),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
  """A release, calibrated before anything is trained, with its cost.

  Attributes:
    method: name of the method.
    settings: as asked for, with what was None chosen by the method's recipe.
    sizes: the sizes of the data that it is for; other people need another plan.
    budget: what may be spent; None for methods without a guarantee.
    network: what is trained, by name.
    loss: `(logits, y) -> [n]` losses.
    config: calibrated settings of the trainer; each method has its own type.
    event: what the release is charged as; None if nothing covers it.
    guarantee: what is protected, and what is not.
    abstention: the rule that predictions are shown by; None shows all.
    row_norm: features are projected into a ball of this radius; None leaves them as they are.
    says: sentences about the plan, for the user.
  """

  method: str
  settings: Any
  sizes: Sizes
  budget: accounting.Budget | None
  network: Network
  loss: PerExampleLoss
  config: Any
  event: accounting.Event | None
  guarantee: Protection | None
  abstention: CounterRule | None = None
  row_norm: float | None = None
  says: tuple[str, ...] = ()

  @property
  def model(self) -> Model:
    """The network that is trained."""
    return self.network.model

  def bounded(self, people: Population) -> Population:
    """The people with features in the ball that the plan asks for, each row by itself."""
    if self.row_norm is None:
      return people
    radius, public = self.row_norm, people.public
    inside = jax.jit(lambda x: _scaling.bound_any_rows(x, radius))
    if public is not None:
      people = dataclasses.replace(people, public=public._replace(x=inside(public.x)))
    if people.source is not None:
      near = functools.partial(_scaling.bound_any_rows, norm=radius)
      told = f"rows of norm {radius!r}"
      view = SourceView(people.source, np.zeros(0, np.int64), near, told)
      return dataclasses.replace(people, source=view)
    return dataclasses.replace(people, private=people.private._replace(x=inside(people.private.x)))


class Method(Protocol):
  """One way from people and a budget to a model.

  Attributes:
    name: in configs and in the registry.
    protects: a person's whole "record", or their "group" alone; None for baselines.
    relation: which data sets count as neighbors.
    needs: of "public" (features of public people), "groups" (of the private), "public_groups".
    settings: the class of its settings; all of them have defaults.
    traceable: whether `fit` may be inside jit and vmap.
    scales: of "disk" (people may be a `Source`) and "devices" (a mesh may share a release).
    reference: the paper.
  """

  @property
  def name(self) -> str:
    """See the class."""

  @property
  def protects(self) -> Literal["record", "group"] | None:
    """See the class."""

  @property
  def relation(self) -> accounting.Relation | None:
    """See the class."""

  @property
  def needs(self) -> frozenset[str]:
    """See the class."""

  @property
  def settings(self) -> type[NetworkSettings]:
    """See the class."""

  @property
  def traceable(self) -> bool:
    """See the class."""

  @property
  def scales(self) -> frozenset[str]:
    """See the class."""

  @property
  def reference(self) -> str:
    """See the class."""

  def plan(self, settings: Any, sizes: Sizes, budget: accounting.Budget | None) -> Plan:
    """Checks the settings, calibrates the noise and computes the cost of the release.

    On the host; looks at no person. The event never exceeds the budget.
    """

  def fit(self, plan: Plan, data: Population, *, key: Key) -> Fit:
    """Computes the model for a study: a pure function of data and key, for those who hold the data.

    Nothing is charged or written, and the key makes the noise guessable.
    """

  def check_people(self, plan: Plan, data: Population) -> None:
    """Raises for people whom the settings do not fit, before anything is bought or charged."""

  def release(
    self, plan: Plan, data: Population, *, folder: str | pathlib.Path, key: Key | None = None
  ) -> Released:
    """Computes the model for release, into `folder / "release"`.

    The ledger is written first, randomness comes from the operating system, and key and checkpoints
    are erased at the end. The same call continues a release that was stopped; others are refused.

    Args:
      plan: from `plan`, for these people.
      data: the people.
      folder: folder of this release; `work` inside it must not be published.
      key: for tests; the result is then marked as not for release.
    """


def refuse_unfit(
  method: Method, settings: Any, sizes: Sizes, budget: accounting.Budget | None
) -> None:
  """Raises for settings, people or a budget that a method cannot work with."""
  checks.require(
    isinstance(settings, method.settings),
    f"settings={settings!r} are not those of {method.name}; pass {method.settings.__name__}(...)",
  )
  checks.integer("sizes.private", sizes.private, low=1)
  checks.integer("sizes.classes", sizes.classes, low=2)
  checks.require(
    sizes.public > 0 or not method.needs & {"public", "public_groups"},
    f"{method.name} needs public people; pass some (--public FILE, or the share of the people "
    "who are public), or choose a method that needs none, such as dp_sgd",
  )
  checks.require(
    sizes.groups > 1 or not method.needs & {"groups", "public_groups"},
    f"{method.name} compares groups, but there is only one; name a group column with two "
    "groups or more, or choose a method without groups",
  )
  if method.protects is not None:
    checks.require(budget is not None, f"budget is missing; {method.name} spends (epsilon, delta)")
    assert budget is not None
    checks.positive("epsilon", budget.epsilon, "a budget of 0 buys nothing")
    checks.number(
      "delta",
      budget.delta,
      low=0.0,
      high=1.0,
      open_low=True,
      open_high=True,
      remedy="use well below one over the number of people",
    )


def refuse_margin(settings: Any) -> None:
  """Raises for a prediction margin that would need true labels, which are not known in time."""
  checks.require(
    settings.notion == PARITY or settings.max_gap is None,
    f"max_gap={settings.max_gap} is a margin for predictions, and notion={settings.notion!r} reads "
    f"true labels, which nobody knows then; leave max_gap out, or use notion={PARITY!r}",
  )


def network_of(settings: NetworkSettings, sizes: Sizes) -> Network:
  """The network that settings name, for these people."""
  return Network(settings.network, sizes.classes, tuple(settings.hidden), settings.width)
