"""Cost of group Hessian traces: closed form, probes, all parameters.

The network is 100-128-128-2 (29,698 parameters) with two groups of 5,000
people. CPU time of the process after compilation, ways taken in turn. Probes
and single parameters are timed in small numbers and scaled.

  python benchmarks/curvature.py [--people 10000] [--rounds 5]
"""

import argparse
import functools

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import timing

from jaxfair import models, tree
from jaxfair.analysis import hessian_trace, top_eigenvalue
from jaxfair.analysis._by_group import mean_by_group
from jaxfair.analysis._directional_derivatives import along
from jaxfair.analysis._hessian_residual import plan_residual
from jaxfair.types import Examples

KEY = jax.random.key(0)
LOSS = models.cross_entropy
PROBES = 100
FEW = 5  # how many of them are timed, and of single parameters


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--people", type=int, default=10_000)
  parser.add_argument("--rounds", type=int, default=5)
  arguments = parser.parse_args()
  examples = people(arguments.people)
  for activation in ("relu", "tanh"):
    compare(activation, examples, arguments.rounds)


def people(count: int) -> Examples:
  rng = np.random.default_rng(0)
  x = rng.normal(size=(count, 100)).astype(np.float32)
  y = (x[:, 0] + rng.normal(size=count) > 0).astype(np.int32)
  group = (np.arange(count) % 2).astype(np.int32)
  return jax.tree.map(jnp.asarray, Examples(x, y, group))


def compare(activation: str, examples: Examples, rounds: int) -> None:
  model = models.mlp((128, 128), 2, activation)
  params = model.init(KEY, examples.x[0])
  size = tree.size(params)
  plan = plan_residual(model, params, examples.x)

  def trace(method: str, **more: object) -> object:
    found = hessian_trace(model, LOSS, params, examples, num_groups=2, method=method, **more)
    return jax.block_until_ready(found)

  @jax.jit
  def single_parameters(params: object) -> object:
    """What the slow way does, for a few of the parameters."""
    flat, unravel = jax.flatten_util.ravel_pytree(params)

    def one(index: jax.Array) -> object:
      direction = unravel(jnp.zeros_like(flat).at[index].set(1.0))
      found = along(model, LOSS, params, examples, direction).curvatures
      return mean_by_group(found, examples.group, 2)

    return jax.lax.map(one, jnp.arange(FEW))

  @jax.jit
  def products(params: object) -> object:
    """Hessian-vector products of the groups' losses, forward over reverse."""
    flat, unravel = jax.flatten_util.ravel_pytree(params)

    def group_losses(vector: jax.Array) -> jax.Array:
      losses = LOSS(model.apply(unravel(vector), examples.x), examples.y)
      return mean_by_group(losses, examples.group, 2).group

    def one(index: jax.Array) -> jax.Array:
      direction = jnp.zeros_like(flat).at[index].set(1.0)

      def one_group(a: int) -> jax.Array:
        gradient = jax.grad(lambda v: group_losses(v)[a])
        return jax.jvp(gradient, (flat,), (direction,))[1][index]

      return jnp.stack([one_group(0), one_group(1)])

    return jax.lax.map(one, jnp.arange(FEW))

  jobs = {
    "exact": functools.partial(trace, "exact"),
    "Gauss-Newton alone": functools.partial(trace, "gauss_newton"),
    f"{FEW} Hutchinson probes": functools.partial(trace, "hutchinson", key=KEY, probes=FEW),
    f"{FEW} single parameters": lambda: jax.block_until_ready(single_parameters(params)),
    f"{FEW} Hessian-vector products": lambda: jax.block_until_ready(products(params)),
    "Lanczos, 30 steps": lambda: jax.block_until_ready(
      top_eigenvalue(model, LOSS, params, examples, num_groups=2, key=KEY)
    ),
  }
  found = timing.compare(jobs, rounds=rounds)
  title = f"{activation}: {size} parameters, {plan.directions} directions a person for the residual"
  timing.report(found, "exact", title)
  exact = found["exact"].median
  probes = PROBES / FEW * found[f"{FEW} Hutchinson probes"].median
  print(f"  {PROBES} probes / exact: {probes / exact:,.0f}x")
  for name in ("single parameters", "Hessian-vector products"):
    whole = size / FEW * found[f"{FEW} {name}"].median
    print(f"  all {size} {name} / exact: {whole / exact:,.0f}x ({whole:,.0f} s)")
  groups = 30 / FEW * found[f"{FEW} Hessian-vector products"].median
  top = found["Lanczos, 30 steps"].median
  print(f"  Lanczos for groups and everybody / 30 products of the groups: {top / groups:.2f}x")
  estimate = trace("hutchinson", key=KEY, probes=PROBES)
  truth = trace("exact")
  off = np.abs(estimate.traces.group / truth.traces.group - 1)
  print(f"  {PROBES} probes are off by {100 * off.max():.1f}%")


if __name__ == "__main__":
  main()
