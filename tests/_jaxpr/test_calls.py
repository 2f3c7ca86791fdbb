"""The table of call-like primitives against the JAX that is installed."""

import ast
import importlib
import operator
import pathlib
import sys

import jax
import jax.numpy as jnp
import pytest
from jax.extend.core import Primitive

from jaxfair import _jaxpr
from jaxfair._jaxpr.calls import CALLS

MESH = jax.make_mesh((1,), ("a",))
KERNELS = ("pallas", "cudnn")  # programs on references to memory


@jax.custom_jvp
def own_jvp(x):
  return jnp.sin(x)


@jax.custom_vjp
def own_vjp(x):
  return jnp.sin(x)


@jax.custom_batching.custom_vmap
def own_vmap(x):
  return 2 * x


own_jvp.defjvp(lambda x, t: (own_jvp(x[0]), t[0]))
own_vjp.defvjp(lambda x: (own_vjp(x), x), lambda _, g: (g,))
own_vmap.def_vmap(lambda size, batched, x: (2 * x, True))


def odd_sum(a, b):
  return a + b + a * b


# Every public function of JAX that takes a function and leaves it in a program.
EXAMPLES = {
  "jit": jax.jit(jnp.sin),
  "checkpoint": jax.checkpoint(jnp.sin),
  "grad of checkpoint": jax.grad(lambda x: jax.checkpoint(lambda v: jnp.sin(jnp.sin(v)))(x).sum()),
  "custom_jvp": own_jvp,
  "custom_vjp": own_vjp,
  "custom_gradient": jax.custom_gradient(lambda x: (x, lambda g: g)),
  "custom_vmap": own_vmap,
  "scan": lambda x: jax.lax.scan(lambda c, v: (c + v, c), 0.0, x),
  "grad of scan": jax.grad(lambda x: jax.lax.scan(lambda c, v: (jnp.sin(c + v), c), 0.0, x)[0]),
  "map": lambda x: jax.lax.map(jnp.sin, x),
  "associative_scan": lambda x: jax.lax.associative_scan(odd_sum, x),
  "fori_loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, v: v + i, x),
  "while_loop": lambda x: jax.lax.while_loop(lambda v: v.sum() < 9, lambda v: v + 1, x),
  "cond": lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
  "switch": lambda x: jax.lax.switch(jnp.int32(x.sum()), [jnp.sin, jnp.cos], x),
  "platform_dependent": lambda x: jax.lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos),
  "reduce": lambda x: jax.lax.reduce(x, 0.0, odd_sum, (0,)),
  "reduce_window": lambda x: jax.lax.reduce_window(x, 0.0, odd_sum, (2,), (1,), "VALID"),
  "scatter": lambda x: x.at[0].set(1.0),
  "scatter-add": lambda x: x.at[0].add(1.0),
  "scatter-mul": lambda x: x.at[0].multiply(2.0),
  "scatter-min": lambda x: x.at[0].min(2.0),
  "scatter-max": lambda x: x.at[0].max(2.0),
  "scatter-sub": lambda x: x.at[0].subtract(2.0),
  "scatter apply": lambda x: x.at[jnp.array([0])].apply(jnp.sin),
  "custom_root": lambda x: jax.lax.custom_root(lambda v: v - x, x, lambda f, v: v, lambda g, v: v),
  "custom_linear_solve": lambda x: jax.lax.custom_linear_solve(
    lambda v: 2 * v, x, lambda _, b: b / 2, symmetric=True
  ),
  "linear_call": lambda x: jax.custom_derivatives.linear_call(
    lambda _, v: 2 * v, lambda _, v: 2 * v, (), x
  ),
  "composite": jax.lax.composite(jnp.sin, name="jaxfair.sine"),
  "shard_map": jax.shard_map(jnp.sin, mesh=MESH, in_specs=jax.P(), out_specs=jax.P()),
  "callback": lambda x: jax.pure_callback(lambda v: v, x, x),
  "solve": lambda x: jnp.linalg.solve(jnp.diag(x), x),
  "random": lambda x: jax.random.gamma(jax.random.key(0), x),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_call_that_a_traced_function_leaves_is_in_the_table(name):
  program = jax.make_jaxpr(EXAMPLES[name])(jnp.ones(3))
  for equation in _jaxpr.equations(program):
    if _jaxpr.inner(equation):
      assert equation.primitive.name in CALLS
    elif equation.primitive.name not in ("scatter", "reduce_window"):
      assert _jaxpr.kind(equation) is None


def test_what_can_be_opened_has_the_inputs_and_outputs_of_its_equation():
  found = set()
  for function in EXAMPLES.values():
    for equation in _jaxpr.equations(jax.make_jaxpr(function)(jnp.ones(3))):
      if _jaxpr.kind(equation) in (None, _jaxpr.Kind.OPAQUE):
        continue
      program = _jaxpr.opened(equation)
      program = getattr(program, "jaxpr", program)
      found.add(equation.primitive.name)
      for ours, theirs in ((program.invars, equation.invars), (program.outvars, equation.outvars)):
        assert [v.aval.shape for v in ours] == [v.aval.shape for v in theirs]
  assert found >= {"jit", "remat2", "custom_jvp_call"}


def test_what_is_opaque_is_not_opened():
  (loop,) = jax.make_jaxpr(EXAMPLES["scan"])(jnp.ones(3)).eqns
  with pytest.raises(ValueError, match="scan cannot be replaced"):
    _jaxpr.opened(loop)


@pytest.mark.slow
def test_table_and_jax_agree_on_what_holds_a_program():
  bound, known = primitives_of_jax()
  assert set(CALLS) <= known  # no name of an older JAX
  assert bound <= set(CALLS), sorted(bound - set(CALLS))
  assert len(bound) > 15  # the search still finds them


def primitives_of_jax():
  """Names of primitives bound with a program in JAX's sources, and of all."""
  root = pathlib.Path(jax.__file__).parent
  bound = set()
  for path in sorted((root / "_src").rglob("*.py")):
    text = path.read_text(encoding="utf-8")
    if ".bind(" not in text or set(KERNELS) & set(path.parts):
      continue
    if "jaxpr=" in text or "branches=" in text:
      inside = path.relative_to(root.parent).with_suffix("").parts
      module = importlib.import_module(".".join(inside))
      places = bound_with_programs(ast.parse(text))
      bound |= {name for place in places for name in named(module, place)}
  modules = [m for name, m in sys.modules.items() if name.startswith("jax.")]
  values = [value for module in modules for value in vars(module).values()]
  return bound, {v.name for v in values if isinstance(v, Primitive)}


def bound_with_programs(tree):
  """The expressions `p` in calls `p.bind(..., jaxpr=...)` and the like."""
  for node in ast.walk(tree):
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
      words = [word.arg or "" for word in node.keywords]
      holds = any("jaxpr" in word or word == "branches" for word in words)
      if holds and node.func.attr == "bind":
        yield ast.unparse(node.func.value)


def named(module, place):
  """The name of the primitive at `lax.scan_p`; none for a local variable."""
  try:
    found = operator.attrgetter(place)(module)
  except AttributeError:
    return []
  return [found.name] if isinstance(found, Primitive) else []
