"""docs/why_groups_pay.md speaks of things that exist, and of true counts."""

import jax
import jax.numpy as jnp
import pytest

from helpers import pages
from jaxfair import models
from jaxfair.analysis import _hessian_residual

PAGE = "docs/why_groups_pay.md"


def test_the_examples_are_python():
  blocks = pages.code_blocks(pages.read(PAGE))
  assert len(blocks) == 5
  for block in blocks:
    compile(block, PAGE, "exec")


@pytest.mark.parametrize(
  ("model", "directions"),
  [
    (models.logistic(2), 0),
    (models.mlp((8, 8, 8), 2), 0),
    (models.mlp(16, 2, "gelu"), 1),
    (models.mlp((128, 128), 2, "tanh"), 3),
    (models.mlp((128, 128, 128), 2, "tanh"), 131),
  ],
)
def test_the_table_of_directions(model, directions):
  x = jax.ShapeDtypeStruct((5, 100), jnp.float32)
  one = jax.ShapeDtypeStruct((100,), jnp.float32)
  params = jax.eval_shape(model.init, jax.random.key(0), one)
  assert _hessian_residual.plan_residual(model, params, x).directions == directions
