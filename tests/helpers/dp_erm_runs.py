"""Runs of the chapter 3 studies on made-up people whose groups we know."""

import json
import pathlib

import jax
import pytest

from jaxfair import data, studies
from jaxfair.studies import dp_erm

CONFIGS = pathlib.Path(__file__).parents[2] / "configs" / "dp_erm"
FIGURES = sorted(path.stem for path in CONFIGS.glob("fig_*.toml"))


def two_groups(norms=(2.0, 5.0), sizes=(200, 100)):
  """As easy to classify; the second group, the minority, has larger inputs."""
  return data.two_gaussians(
    sizes, norms=norms, dimension=3, key=jax.random.key(7)
  )


def plan(figure, *sets, size="smoke"):
  """The plan of a figure's config."""
  values = studies.read(CONFIGS / f"{figure}.toml", size=size, sets=sets)
  return studies.plan(studies.find(values["study"]), values)


def run(folder, figure, *sets, people=None):
  """The table and the verdicts by name, of made-up people for every set."""
  people = people or two_groups()
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(dp_erm, "load", lambda name: people)
    table = studies.execute(plan(figure, *sets), folder)
  claims = json.loads((folder / "claims.json").read_text())
  return table, {claim["name"]: claim for claim in claims}
