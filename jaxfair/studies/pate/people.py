"""PATE: which people noise affects most.

Input norms, gradient norms, flip probabilities, closeness to the boundary and
excess risks of the public people, and how they correlate.
"""

import functools
from typing import Any

import jax
import numpy as np

from jaxfair import analysis, data, models, tree
from jaxfair import experiments as ex
from jaxfair.experiments import _claims as claims_module
from jaxfair.experiments import _figures, _study
from jaxfair.experiments._measures import EVERYONE
from jaxfair.experiments._statistics import rank_correlation
from jaxfair.studies.pate import ensembles as es
from jaxfair.studies.pate.penalty import EACH, claims, if_learnt
from jaxfair.studies.pate.students import measured, penalty_students
from jaxfair.types import Examples, Model, Params

PERSON, SPLIT, MODEL = "person", "split", "model"
STRONG = 0.5  # what counts as the strong correlation that the papers speak of
# Each pair of measures, how large its correlation must be, what the papers say, and where.
PAIRS = {
  ("input_norm", "gradient_norm"): (
    STRONG,
    "Input norms and gradient norms are strongly correlated",
    {"credit": "Fig. 3, norms; Fig. 4.4, norms", EACH: "Fig. 13; Fig. 4.15"},
  ),
  ("input_norm", "excess_errors"): (
    0.0,
    "Noise adds more errors for people with larger inputs",
    {EACH: "Fig. 12; Fig. 4.14"},
  ),
  ("closeness", "flip_probability"): (
    STRONG,
    "Closeness to the boundary and flip probability are strongly correlated",
    {"credit": "Fig. 6", EACH: "Fig. 6, all; Fig. 4.6"},
  ),
  ("flip_probability", "excess_errors"): (
    0.0,
    "Noise adds more errors for people whose labels are flipped more often",
    {"credit": "Fig. 6, flips; Fig. 4.6, flips"},
  ),
}
NAMES = [f"{first}, {second}".replace("_", " ") for first, second in PAIRS]


def run(config: es.PenaltyConfig, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """The people of the first split, and correlations on every split."""
  people, made = es.repetitions(config, cell, context)
  model = config.network(people)
  tables = []
  for seed, ensemble in enumerate(made):
    truth = jax.nn.one_hot(ensemble.public.y, people.num_classes)
    trained = penalty_students(config, model, ensemble, truth)
    first = tree.take(trained, (slice(None), slice(0, 1)))
    errors, learnt = measured(model, first, ensemble.test, people.num_groups)
    learnt["accuracy"] = 1 - errors[..., -1]
    groups = [people.group_names[g] for g in np.asarray(ensemble.public.group)]
    for i, penalty in enumerate(config.penalties):
      setting = {**cell, "penalty": penalty}
      found = _people(config, model, people, ensemble, tree.take(trained, i))
      if seed == 0:
        own = {"row": PERSON, **setting}
        tables.append(ex.Table.from_arrays(own, {"group": groups}, found))
      values = [rank_correlation(found[a], found[b]) for a, b in PAIRS]
      own = {**setting, "seed": seed}
      known = {"pair": NAMES}, {"correlation": values}
      tables.append(ex.Table.from_arrays({"row": SPLIT, **own}, *known))
      own |= {"row": MODEL, "group": EVERYONE}
      tables.append(ex.Table.from_rows([own | {k: float(v[i, 0]) for k, v in learnt.items()}]))
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
  errors = np.asarray(_errors(model, tree.take(trained, slice(0, -1)), voted), np.float64)
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
    "excess_errors": errors[1:].mean(0) - errors[0],
  }


@functools.partial(jax.jit, static_argnames=("model",))
def _errors(model: Model, trained: Params, voted: Examples) -> jax.Array:
  """[1 + D, m] whether each student is wrong about each person."""
  logits = jax.lax.map(lambda own: model.apply(own, voted.x), trained)
  return jax.vmap(models.zero_one, (0, None))(logits, voted.y)


def _notes(config: es.PenaltyConfig) -> list[str]:
  return [
    f"Each point is a public person of the first of {config.splits} splits; expectations are "
    f"means over {config.draws} draws of noise of sigma {config.sigma:g}. Correlations are "
    "Spearman's, with intervals over splits.",
    "The excess risk of a person is in 0/1 loss at the teachers' plurality label, as the papers "
    "define it; closeness is that of a student of the true labels. A correlation counts as strong "
    f"from {STRONG:g} on.",
    "penalty is lambda beside the sum of the losses. At the largest, which is the papers', a "
    "network predicts one class for everybody.",
    "These figures tell of single people and of private votes: they are for those who hold the "
    "data.",
  ]


def _correlated(pair: str, bar: float, pick: Any) -> claims_module.Check:
  check = (ex.mean("correlation") > bar).at(row=SPLIT, pair=pair, penalty=pick)
  return if_learnt(check, {"row": MODEL, "penalty": pick})


def _claims() -> dict[str, claims_module.Check]:
  """At the least penalty, where students learn, and at the largest, which is the papers'."""
  return claims(
    (
      f"{pair}, {which} penalty",
      _correlated(pair, bar, pick),
      f"{statement} ({which} penalty)",
      places,
    )
    for pair, (bar, statement, places) in zip(NAMES, PAIRS.values(), strict=True)
    for which, pick in (("least", min), ("largest", max))
  ) | claims(
    (
      f"{NAMES[1]}, strong, {which} penalty",
      _correlated(NAMES[1], STRONG, pick),
      f"Input norms and excess risks are strongly correlated ({which} penalty)",
      {"credit": "Fig. 5, risk; Fig. 4.5, risk"},
    )
    for which, pick in (("least", min), ("largest", max))
  )


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
  plain={"row": MODEL},
  reference={"row": MODEL, "penalty": min},
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
    _points("input_norm", "excess_errors", "Excess risk against input norm"),
    _points("closeness", "flip_probability", "Flips against closeness"),
    _points("flip_probability", "excess_errors", "Excess risk against flips"),
  ),
)
