"""PATE: who is moved by noise, person by person.

Input norms, gradient norms, flip probabilities, closeness to the boundary and
excess risks of the public people, and how they go together.
"""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import analysis, data, models, tree
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import (
  Check,
  in_each,
  mean_above,
  rank_correlation,
)
from jaxfair.studies.pate.ensembles import (
  Ensemble,
  PenaltyConfig,
  cells,
  model_of,
  repetitions,
)
from jaxfair.studies.pate.students import hard_labels, penalty_students
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.types import Examples, Model, Params

PERSON, SPLIT = "person", "split"
PAIRS = (
  ("input_norm", "gradient_norm"),
  ("input_norm", "excess_loss"),
  ("input_norm", "excess_errors"),
  ("closeness", "flip_probability"),
  ("flip_probability", "excess_loss"),
  ("flip_probability", "excess_errors"),
)


def run(
  config: PenaltyConfig, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """The people of the first split, and correlations on every split."""
  people, made = repetitions(config, cell, context)
  tables = []
  for seed, ensemble in made:
    trained = _students(config, people, ensemble)
    for i, penalty in enumerate(config.penalties):
      setting = {**cell, "penalty": penalty}
      found = _people(config, people, ensemble, tree.take(trained, i))
      if seed == 0:
        tables.append(_points_of(setting, found, people, ensemble))
      values = [rank_correlation(found[a], found[b]) for a, b in PAIRS]
      pairs = [_pair(first, second) for first, second in PAIRS]
      tables.append(
        Table.from_arrays(
          {"row": SPLIT, **setting, "seed": seed},
          {"pair": pairs},
          {"correlation": values},
        )
      )
  return Table.concat(tables)


def _students(
  config: PenaltyConfig, people: data.Dataset, ensemble: Ensemble
) -> Params:
  """[penalties, 1 + draws + 1] students; the last learns the true labels."""
  noisy = hard_labels(
    ensemble, [config.sigma], config.draws, key=ensemble.key_noise
  )
  truth = jax.nn.one_hot(ensemble.public.y, people.num_classes)
  labels = jnp.concatenate([noisy, truth[None, None]], axis=1)
  model = model_of(config, people)
  return penalty_students(config, model, ensemble, labels)


def _people(
  config: PenaltyConfig,
  people: data.Dataset,
  ensemble: Ensemble,
  trained: Params,
) -> Mapping[str, np.ndarray]:
  """What is known of each public person, [m] each."""
  model = model_of(config, people)
  voted = ensemble.public._replace(y=ensemble.majority)
  errors, losses = (
    np.asarray(values, np.float64)
    for values in _risks(model, tree.take(trained, slice(0, -1)), voted)
  )
  norms = analysis.norms(
    model,
    models.cross_entropy,
    tree.take(trained, 0),
    voted,
    num_groups=people.num_groups,
  )
  scores = model.apply(tree.take(trained, -1), ensemble.public.x)
  return {
    "input_norm": np.asarray(norms.inputs),
    "gradient_norm": np.asarray(norms.gradients),
    "closeness": np.asarray(analysis.closeness(scores)),
    "flip_probability": np.asarray(
      analysis.flip_probability(ensemble.counts, sigma=config.sigma)
    ),
    "excess_loss": losses[1:].mean(0) - losses[0],
    "excess_errors": errors[1:].mean(0) - errors[0],
  }


def _points_of(
  setting: Mapping[str, Any],
  found: Mapping[str, np.ndarray],
  people: data.Dataset,
  ensemble: Ensemble,
) -> Table:
  """One row per public person."""
  groups = [people.group_names[g] for g in np.asarray(ensemble.public.group)]
  own = {"row": PERSON, **setting}
  same = {name: [value] * len(groups) for name, value in own.items()}
  return Table(same | {"group": groups} | dict(found))


@functools.partial(jax.jit, static_argnames=("model",))
def _risks(
  model: Model, trained: Params, voted: Examples
) -> tuple[jax.Array, jax.Array]:
  """[1 + D, m] errors and losses of each student on each person."""
  logits = jax.lax.map(lambda own: model.apply(own, voted.x), trained)
  errors, losses = (
    jax.vmap(loss, (0, None))(logits, voted.y)
    for loss in (models.zero_one, models.cross_entropy)
  )
  return errors, losses


def _notes(config: PenaltyConfig) -> list[str]:
  return [
    f"Each point is a public person of the first of {config.splits} splits; "
    f"expectations are means over {config.draws} draws of noise of sigma "
    f"{config.sigma:g}. Correlations are Spearman's, with intervals over "
    "splits.",
    "The excess risk of a person is that at the teachers' plurality label, as "
    "the papers define it; closeness is that of a student of the true labels.",
    "penalty is lambda beside the sum of the losses. At the largest, which is "
    "the papers', a network answers one class to everybody.",
    "These figures tell of single people and of private votes: they are for "
    "those who hold the data.",
  ]


def _pair(first: str, second: str) -> str:
  return f"{first}, {second}".replace("_", " ")


def _claims(
  first: str, second: str, statement: str, source: str
) -> list[Claim]:
  """At the least penalty, and at the largest.

  Errors have the first only: at the largest, noise adds none to most people.
  """
  pair = _pair(first, second)
  on_sets = in_each("data", mean_above("correlation", where={"pair": pair}))

  def at(pick: Any) -> Check:
    def check(table: Table) -> protocol.Finding:
      if "penalty" not in table:
        return protocol.Finding("", why="the table has no column penalty")
      return on_sets(table.where(row=SPLIT, penalty=pick(table["penalty"])))

    return check

  picks = [("least", min), ("largest", max)]
  return [
    Claim(
      f"{pair}, {which} penalty",
      f"{statement} ({which} penalty)",
      at(pick),
      source,
    )
    for which, pick in picks[: 1 if second == "excess_errors" else 2]
  ]


def _points(x: str, y: str, title: str) -> Figure:
  return Figure(
    f"{y}_by_{x}",
    title,
    x=x,
    y=y,
    mark="point",
    color="penalty",
    facet="data",
    where={"row": PERSON},
    caption="One point per public person of the first split.",
  )


STUDY = protocol.Study(
  name="pate.people",
  summary="PATE, person by person: norms, flips, closeness and excess risk",
  config=PenaltyConfig,
  cells=cells,
  run=run,
  notes=_notes,
  summaries=(
    Summary(
      "Spearman's correlations",
      by=("pair", "penalty", "data"),
      values=("correlation",),
      where={"row": SPLIT},
    ),
  ),
  claims=(
    *_claims(
      "input_norm",
      "gradient_norm",
      "People with larger inputs have larger gradients",
      "Fig. 3, 13; thesis 4.4, 4.15",
    ),
    *_claims(
      "input_norm",
      "excess_loss",
      "People with larger inputs have larger excess risks",
      "Fig. 5, 12; thesis 4.5, 4.14",
    ),
    *_claims(
      "input_norm",
      "excess_errors",
      "Noise adds more errors for people with larger inputs",
      "Fig. 5, 12; thesis 4.5, 4.14",
    ),
    *_claims(
      "closeness",
      "flip_probability",
      "Labels of people close to the boundary are flipped more often",
      "Fig. 6; thesis 4.6",
    ),
    *_claims(
      "flip_probability",
      "excess_loss",
      "People whose labels are flipped more often have larger excess risks",
      "Fig. 6; thesis 4.6",
    ),
    *_claims(
      "flip_probability",
      "excess_errors",
      "Noise adds more errors for people whose labels are flipped more often",
      "Fig. 6; thesis 4.6",
    ),
  ),
  figures=(
    Figure(
      "correlations",
      "What goes together",
      x="data",
      y="correlation",
      color="pair",
      facet="penalty",
      reference=0.0,
      where={"row": SPLIT},
      y_title="Spearman's correlation",
    ),
    _points("input_norm", "gradient_norm", "Gradient against input norm"),
    _points("input_norm", "excess_loss", "Excess risk against input norm"),
    _points("closeness", "flip_probability", "Flips against closeness"),
    _points("flip_probability", "excess_loss", "Excess risk against flips"),
  ),
)
