"""PATE: which people noise affects most.

Input norms, gradient norms, flip probabilities, closeness to the boundary and
excess risks of the public people, and how they correlate.
"""

import functools

import jax
import numpy as np

from jaxfair import analysis, data, models, tree
from jaxfair import experiments as ex
from jaxfair.experiments import _claims as claims_module
from jaxfair.experiments import _figures, _study
from jaxfair.experiments._statistics import rank_correlation
from jaxfair.studies.pate import ensembles as es
from jaxfair.studies.pate.students import penalty_students
from jaxfair.types import Examples, Model, Params

PERSON, SPLIT = "person", "split"
FIGURE_5, FIGURE_6 = "Fig. 5, 12; thesis 4.5, 4.14", "Fig. 6; thesis 4.6"
PAIRS = {
  ("input_norm", "gradient_norm"): "Fig. 3, 13; thesis 4.4, 4.15",
  ("input_norm", "excess_loss"): FIGURE_5,
  ("input_norm", "excess_errors"): FIGURE_5,
  ("closeness", "flip_probability"): FIGURE_6,
  ("flip_probability", "excess_loss"): FIGURE_6,
  ("flip_probability", "excess_errors"): FIGURE_6,
}
STATEMENTS = (
  "People with larger inputs have larger gradients",
  "People with larger inputs have larger excess risks",
  "Noise adds more errors for people with larger inputs",
  "Labels of people close to the boundary are flipped more often",
  "People whose labels are flipped more often have larger excess risks",
  "Noise adds more errors for people whose labels are flipped more often",
)
NAMES = [f"{first}, {second}".replace("_", " ") for first, second in PAIRS]


def run(config: es.PenaltyConfig, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """The people of the first split, and correlations on every split."""
  people, made = es.repetitions(config, cell, context)
  model = config.network(people)
  tables = []
  for seed, ensemble in enumerate(made):
    truth = jax.nn.one_hot(ensemble.public.y, people.num_classes)
    trained = penalty_students(config, model, ensemble, truth)
    groups = [people.group_names[g] for g in np.asarray(ensemble.public.group)]
    for i, penalty in enumerate(config.penalties):
      setting = {**cell, "penalty": penalty}
      found = _people(config, model, people, ensemble, tree.take(trained, i))
      if seed == 0:
        own = {"row": PERSON, **setting}
        tables.append(ex.Table.from_arrays(own, {"group": groups}, found))
      values = [rank_correlation(found[a], found[b]) for a, b in PAIRS]
      own = {"row": SPLIT, **setting, "seed": seed}
      tables.append(ex.Table.from_arrays(own, {"pair": NAMES}, {"correlation": values}))
  return ex.Table.concat(tables)


def _people(
  config: es.PenaltyConfig,
  model: Model,
  people: data.Dataset,
  ensemble: es.Ensemble,
  trained: Params,
) -> dict[str, np.ndarray]:
  """Everything known about each public person, [m] each.

  The students are those of the majority, of each draw, and of true labels.
  """
  voted = ensemble.public._replace(y=ensemble.majority)
  errors, losses = (
    np.asarray(values, np.float64)
    for values in _risks(model, tree.take(trained, slice(0, -1)), voted)
  )
  norms = analysis.norms(
    model, models.cross_entropy, tree.take(trained, 0), voted, num_groups=people.num_groups
  )
  scores = model.apply(tree.take(trained, -1), ensemble.public.x)
  flips = analysis.flip_probability(ensemble.counts, sigma=config.sigma)
  return {
    "input_norm": np.asarray(norms.inputs),
    "gradient_norm": np.asarray(norms.gradients),
    "closeness": np.asarray(analysis.closeness(scores)),
    "flip_probability": np.asarray(flips),
    "excess_loss": losses[1:].mean(0) - losses[0],
    "excess_errors": errors[1:].mean(0) - errors[0],
  }


@functools.partial(jax.jit, static_argnames=("model",))
def _risks(model: Model, trained: Params, voted: Examples) -> tuple[jax.Array, ...]:
  """[1 + D, m] errors and losses of each student on each person."""
  logits = jax.lax.map(lambda own: model.apply(own, voted.x), trained)
  return tuple(
    jax.vmap(loss, (0, None))(logits, voted.y) for loss in (models.zero_one, models.cross_entropy)
  )


def _notes(config: es.PenaltyConfig) -> list[str]:
  return [
    f"Each point is a public person of the first of {config.splits} splits; expectations are "
    f"means over {config.draws} draws of noise of sigma {config.sigma:g}. Correlations are "
    "Spearman's, with intervals over splits.",
    "The excess risk of a person is that at the teachers' plurality label, as the papers define "
    "it; closeness is that of a student of the true labels.",
    "penalty is lambda beside the sum of the losses. At the largest, which is the papers', a "
    "network predicts one class for everybody.",
    "These figures tell of single people and of private votes: they are for those who hold the "
    "data.",
  ]


def _claims() -> dict[str, claims_module.Check]:
  """At the least penalty, and at the largest.

  Errors have the first only: at the largest, noise adds none to most people.
  """
  above = ex.mean("correlation") > 0
  return {
    f"{pair}, {which} penalty: {statement} ({which} penalty) [{source}]": above.at(
      row=SPLIT, pair=pair, penalty=pick
    ).in_each("data")
    for pair, statement, source in zip(NAMES, STATEMENTS, PAIRS.values(), strict=True)
    for which, pick in (("least", min), ("largest", max))
    if which == "least" or not pair.endswith("excess errors")
  }


def _points(x: str, y: str, title: str) -> _figures.Figure:
  told = "One point per public person of the first split."
  formula = f"{y} ~ {x}, penalty | data"
  return ex.points(f"{y}_by_{x}: {title}", formula, told, where={"row": PERSON})


STUDY = es.study(
  "pate.people",
  "PATE, person by person: norms, flips, closeness and excess risk",
  es.PenaltyConfig,
  run,
  notes=_notes,
  summaries=(
    ex.summary("Spearman's correlations", "correlation ~ pair, penalty, data", {"row": SPLIT}),
  ),
  claims=_claims(),
  figures=(
    ex.bars(
      "correlations: What goes together",
      "correlation ~ data, pair | penalty",
      zero=True,
      where={"row": SPLIT},
      y_title="Spearman's correlation",
    ),
    _points("input_norm", "gradient_norm", "Gradient against input norm"),
    _points("input_norm", "excess_loss", "Excess risk against input norm"),
    _points("closeness", "flip_probability", "Flips against closeness"),
    _points("flip_probability", "excess_loss", "Excess risk against flips"),
  ),
)
