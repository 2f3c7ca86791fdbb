"""Gram matrices of the logits' Jacobian against the Jacobian itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.clipping_models import IMAGE, zoo
from helpers.curved import KEY
from jaxfair.analysis import logit_gram


@pytest.mark.slow
def test_gram_where_layers_have_few_and_many_positions():
  model = zoo()["convolutions"]
  x = jax.random.normal(KEY, (3, *IMAGE))
  params = model.init(KEY, x[0])

  @jax.jit
  def both(params):
    jacobian = jax.vmap(
      jax.jacrev(lambda p, one: model.apply(p, one[None])[0]), (None, 0)
    )(params, x)
    flat = [leaf.reshape(3, 3, -1) for leaf in jax.tree.leaves(jacobian)]
    rows = jnp.concatenate(flat, axis=-1)
    gram = jnp.einsum("nap,nbp->nab", rows, rows)
    return logit_gram(model, params, x), gram

  (logits, found), expected = both(params)
  np.testing.assert_allclose(logits, model.apply(params, x), rtol=1e-4)
  np.testing.assert_allclose(
    found, expected, rtol=1e-4, atol=1e-5 * float(jnp.max(expected))
  )
