"""The least that could have been asked, by brute force."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Int

from jaxfair import checks
from jaxfair.disclosure._beliefs import all_subsets
from jaxfair.disclosure._core_sets import IntervalTest, PureTest
from jaxfair.disclosure._gaussian import check_features
from jaxfair.disclosure._network import Network, as_network
from jaxfair.disclosure._questions import Questions, as_arrays
from jaxfair.types import Features, Key, Params, PyTree

LIMIT = 12  # questions: 4,096 subsets for every person
PAIRS = 1024  # of person and subset side by side: a grid each is much memory


def smallest_core_sets(
  params: Params, questions: Questions, x: Features, *, pure: PureTest = IntervalTest(), key: Key
) -> Int[jax.Array, "n"]:
  """[n] size of the smallest pure core set of each person, by brute force.

  It looks at every subset and therefore at every answer: no procedure for
  people, but a lower bound on what any procedure without error must ask.
  """
  checks.one_key("key", key)
  checks.require(
    questions.size <= LIMIT,
    f"the optimum looks at 2^{questions.size} subsets; use at most {LIMIT} questions",
  )
  check_features(x)
  return _smallest(as_network(params), as_arrays(questions), jnp.asarray(x), pure, key)


@functools.partial(jax.jit, static_argnames=("pure",))
def _smallest(
  network: Network, questions: Questions, x: Features, pure: PureTest, key: jax.Array
) -> jax.Array:
  test = pure.build(network, questions, key=key)
  subsets = jnp.asarray(all_subsets(questions.size))
  sizes = subsets.sum(axis=1)

  def one(values: PyTree) -> jax.Array:
    core = jax.vmap(lambda revealed: test(revealed, values).core)(subsets)
    return jnp.min(jnp.where(core, sizes, questions.size))

  chunk = min(max(1, PAIRS // len(subsets)), x.shape[0])
  return jax.lax.map(one, x, batch_size=chunk)
