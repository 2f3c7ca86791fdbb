"""Arrays of a wrong shape are refused where they enter, not broadcast."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import models
from jaxfair.analysis import _boundary as boundaries
from jaxfair.analysis import _by_group, _flips
from jaxfair.analysis._hutchinson import hutchinson_traces
from jaxfair.types import Examples

PEOPLE, COLUMN = np.zeros(6, int), np.zeros((6, 1), int)
EXAMPLES = Examples(np.ones((6, 2), np.float32), PEOPLE, PEOPLE)


def traces(weights):
  return hutchinson_traces(
    models.logistic(2), models.cross_entropy, {}, EXAMPLES, weights, probes=1, key=jax.random.key(0)
  )


@pytest.mark.parametrize(
  "call",
  [
    lambda: boundaries.closeness(1.0),
    lambda: jax.eval_shape(_flips.vote_margin, jnp.zeros((2, 3, 4))),
    lambda: jax.eval_shape(lambda counts: _flips.flip_probability(counts, sigma=1.0), jnp.zeros(3)),
    lambda: _by_group.mean_by_group(np.zeros((6, 2)), PEOPLE, 2),
    lambda: _by_group.mean_by_group(np.zeros(6), COLUMN, 2),
    lambda: _by_group.weights_by_group(COLUMN, 2),
    lambda: traces(np.ones((3, 5))),
  ],
)
def test_a_wrong_shape_is_refused(call):
  with pytest.raises(AssertionError, match=r"shape|rank"):
    call()
