"""docs/why_groups_pay.md speaks of things that exist, and of true counts."""

import pathlib
import re

import jax
import jax.numpy as jnp
import pytest

from jaxfair import analysis, models, training

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "why_groups_pay.md"
TEXT = PAGE.read_text("utf-8")


def test_every_name_exists():
  for package in (analysis, training):
    short = package.__name__.rsplit(".", 1)[1]
    names = set(re.findall(rf"\b{short}\.([A-Za-z_]+)", TEXT))
    assert names
    assert not [name for name in names if not hasattr(package, name)]


def test_the_examples_are_python():
  blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
  assert len(blocks) == 3
  for block in blocks:
    compile(block, str(PAGE), "exec")


@pytest.mark.parametrize(
  ("model", "directions"),
  [
    (models.logistic(2), 0),
    (models.mlp((8, 8, 8), 2), 0),
    (models.mlp(16, 2, "gelu"), 1),
    (models.mlp((128, 128), 2, "tanh"), 129),
  ],
)
def test_the_table_of_directions(model, directions):
  x = jax.ShapeDtypeStruct((5, 100), jnp.float32)
  one = jax.ShapeDtypeStruct((100,), jnp.float32)
  params = jax.eval_shape(model.init, jax.random.key(0), one)
  assert analysis.plan_residual(model, params, x).directions == directions
