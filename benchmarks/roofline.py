"""Predicted time of DP-SGD steps on accelerators, from the compiler's cost analysis.

  python benchmarks/roofline.py [--only NAME ...] [--docs]

Nothing is run: each step is compiled for the CPU, whose compiler counts operations and bytes. A
step takes at least as long as its products at the device's peak rate, and at least as long as its
bytes at the memory's rate. Products of full float32 precision, which clipping needs, are counted
apart, since accelerators take several passes for them. `--docs` writes docs/accelerators.md.
"""

import argparse
import dataclasses
import math
import pathlib

import jax
import jax.numpy as jnp
import optax
import pages

from jaxfair import _jaxpr, models, training
from jaxfair.privacy._sampling import Batch
from jaxfair.training._dp_sgd import DpSgdInputs, DpSgdProgram, DpSgdState
from jaxfair.training._dp_sgd_feeds import Feed
from jaxfair.types import Examples

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "accelerators.md"


@dataclasses.dataclass(frozen=True)
class Device:
  """Peak rates from the vendor's data sheet.

  Attributes:
    name: of the class of devices.
    short: products per second of float32 arrays at the default precision of JAX there.
    full: products per second at full float32 precision.
    memory: bytes per second.
  """

  name: str
  short: float
  full: float
  memory: float


DEVICES = (
  # bfloat16 in one pass; full float32 takes six of them.
  Device("TPU v5e", 197e12, 197e12 / 6, 819e9),
  # TensorFloat-32 without sparsity; float32 outside of the tensor cores.
  Device("H100 SXM", 495e12, 67e12, 3.35e12),
)

NETWORKS = {
  "softmax regression, 100 features": (models.logistic(2), (100,), 1024),
  "MLP 784-1024-1024-10": (models.mlp((1024, 1024), 10), (784,), 1024),
  "CNN, 28x28": (
    models.convnet(10, (models.Conv(16, stride=2), models.Conv(32, stride=2))),
    (28, 28, 1),
    1024,
  ),
  "ResNet-18, 32x32": (models.resnet(18, 10), (32, 32, 3), 256),
}


def private_step(model, shape, batch):
  """One step of DP-SGD on a batch, as the trainer takes it, with the shapes of its arguments."""
  program = DpSgdProgram(model, models.cross_entropy)
  config = training.DpSgdConfig(batch_size=batch, optimizer=optax.sgd)
  key = jax.eval_shape(lambda: jax.random.key(0))
  params = jax.eval_shape(model.init, key, _array(shape))
  state = DpSgdState(params, jax.eval_shape(optax.sgd(0.1).init, params), _array(()))
  feed = Feed(Batch(_array((batch,), jnp.int32), _array((batch,), bool)), key, key, key, key)
  inputs = DpSgdInputs(_people(shape, batch), config)
  return program.step, (state, feed, inputs)


def plain_step(model, shape, batch):
  """The plain step of the same network."""

  def step(params, people):
    def objective(p):
      return jnp.mean(models.cross_entropy(model.apply(p, people.x), people.y))

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(objective)(params))

  params = jax.eval_shape(model.init, jax.eval_shape(lambda: jax.random.key(0)), _array(shape))
  return step, (params, _people(shape, batch))


@dataclasses.dataclass(frozen=True)
class Cost:
  """What a step takes.

  Attributes:
    flops: operations, by the compiler's count.
    full: those of them in products of full precision.
    moved: bytes that its kernels read and write, by the compiler's count.
  """

  flops: float
  full: float
  moved: float

  def seconds(self, device: Device) -> float:
    """The least time on a device: by its products or by its memory."""
    products = (self.flops - self.full) / device.short + self.full / device.full
    return max(products, self.moved / device.memory)

  def bound(self, device: Device) -> str:
    """Which of the two it is."""
    by_memory = self.seconds(device) == self.moved / device.memory
    return "memory" if by_memory else "products"


def cost_of(step, arguments) -> Cost:
  """The compiler's figures of a step."""
  found = jax.jit(step).lower(*arguments).compile().cost_analysis()
  program = jax.make_jaxpr(step)(*arguments)
  return Cost(found["flops"], _full_products(program), found["bytes accessed"])


def _full_products(program) -> float:
  """Operations in products and convolutions of full precision."""
  total = 0.0
  for equation in _jaxpr.equations(program):
    name = equation.primitive.name
    if name not in ("dot_general", "conv_general_dilated"):
      continue
    asked = equation.params["precision"]
    if asked is None or jax.lax.Precision.HIGHEST not in jax.tree.leaves([asked]):
      continue
    out = math.prod(equation.outvars[0].aval.shape)
    left, right = (atom.aval.shape for atom in equation.invars[:2])
    if name == "dot_general":
      (sums, _), _ = equation.params["dimension_numbers"]
      each = math.prod(left[axis] for axis in sums)
    else:
      kernel = equation.params["dimension_numbers"].rhs_spec
      each = math.prod(right) / right[kernel[0]]
    total += 2 * out * each
  return total


def table(names) -> str:
  """The rows of the page."""
  heads = [f"{device.name}: plain, private (bound by)" for device in DEVICES]
  lines = [
    "| network | batch | GFLOP plain, private | of these full float32 | MB plain, private "
    f"| FLOP per byte | {' | '.join(heads)} |",
    "|" + "---|" * (6 + len(DEVICES)),
  ]
  for name in names:
    model, shape, batch = NETWORKS[name]
    plain = cost_of(*plain_step(model, shape, batch))
    private = cost_of(*private_step(model, shape, batch))
    cells = [
      name,
      f"{batch:,}",
      f"{_three(plain.flops / 1e9)}, {_three(private.flops / 1e9)}",
      f"{100 * private.full / private.flops:.0f}%",
      f"{_three(plain.moved / 1e6)}, {_three(private.moved / 1e6)}",
      f"{private.flops / private.moved:.2g}",
    ]
    for device in DEVICES:
      times = ", ".join(f"{1e3 * one.seconds(device):.2g}" for one in (plain, private))
      cells.append(f"{times} ms ({private.bound(device)})")
    lines.append("| " + " | ".join(cells) + " |")
    print(lines[-1], flush=True)
  return "\n".join(lines)


def _three(number: float) -> str:
  """Three digits, without an exponent."""
  return f"{float(f'{number:.3g}'):,g}"


def _array(shape, dtype=jnp.float32):
  return jax.ShapeDtypeStruct(shape, dtype)


def _people(shape, batch) -> Examples:
  return Examples(_array((batch, *shape)), _array((batch,), jnp.int32), _array((batch,), jnp.int32))


def main() -> None:
  """Prints the table, or writes the page."""
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("--only", nargs="+", metavar="NAME", choices=NETWORKS, default=[*NETWORKS])
  parser.add_argument("--docs", action="store_true", help="write the table of docs/accelerators.md")
  chosen = parser.parse_args()
  made = table(chosen.only)
  if chosen.docs:
    pages.write_table(PAGE, "roofline", made.split("\n"))


if __name__ == "__main__":
  main()
