"""A study that takes no time, so that running studies is what is tested."""

import dataclasses

import jax

from jaxfair import checks
from jaxfair.experiments import Study, Table, _registry, difference, mean
from jaxfair.experiments._claims import Claim
from jaxfair.experiments._figures import Figure, Summary


@dataclasses.dataclass(frozen=True)
class ToyConfig:
  """Means of normal draws: one cell per mean."""

  means: tuple[float, ...] = (0.0, 1.0, 2.0)
  seeds: int = 4
  spread: float = 0.5

  def __post_init__(self) -> None:
    checks.integer("seeds", self.seeds, low=1)
    checks.positive("spread", self.spread)


class Toy:
  """Counts the cells it computes, and fails where it is told to."""

  def __init__(self) -> None:
    self.computed: list[float] = []
    self.contexts: list[object] = []
    self.failures: dict[float, BaseException] = {}
    self.study = Study(
      name="toy",
      summary="Draws numbers",
      config=ToyConfig,
      cells=lambda config: [{"mean": mean} for mean in config.means],
      run=self.run,
      claims=(
        Claim(
          "grows",
          "A larger mean gives larger numbers",
          difference("value", {"mean": 2.0}, {"mean": 0.0}) > 0,
          source="Tab. 1",
        ),
        Claim("odd", "Numbers exceed 100", mean("value") > 100),
        Claim("other", "There is another group", (mean("value") > 0).at(group="other")),
      ),
      figures=(Figure("values", "Values", x="group", y="value", color="mean"),),
      summaries=(Summary("Values", by=("mean", "group"), values=("value",)),),
      notes=lambda config: [f"spread {config.spread}"],
    )

  def run(self, config, cell, context):
    self.contexts.append(context)
    if cell["mean"] in self.failures:
      raise self.failures.pop(cell["mean"])
    self.computed.append(cell["mean"])
    context.say("numbers are drawn")
    context.say(f"around {cell['mean']}")
    draws = jax.random.normal(context.key, (config.seeds, 2))
    values = cell["mean"] + config.spread * draws
    axes = {"seed": range(config.seeds), "group": ["a", "b"]}
    return Table.from_arrays(cell, axes, {"value": values})


def stand_in_for_all(monkeypatch, study) -> None:
  """Every name of a study means this one."""
  monkeypatch.setattr(_registry, "find", lambda name, where="": study)
