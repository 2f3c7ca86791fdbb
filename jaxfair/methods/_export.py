"""A released model for other runtimes: StableHLO for XLA, ONNX for everything else.

Both take features as they were recorded (float32, NaN for a missing number) and
return class ids and probabilities; scaling is inside. Words become numbers in
`Released.encoder`, which stays in Python.
"""

import contextlib
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import jax
import jax.export
import numpy as np

from jaxfair import _whole_files, checks
from jaxfair.methods._released import Released, load

PLATFORMS = ("cpu", "cuda", "tpu")
DENSE = {"logistic": "Relu", "mlp": "Relu", "tanh_mlp": "Tanh"}  # activation of hidden layers
SUFFIX = {"stablehlo": ".stablehlo", "onnx": ".onnx"}
OPSET, IR_VERSION = 18, 10


def export(
  folder: str | pathlib.Path,
  out: str | pathlib.Path,
  *,
  to: Literal["stablehlo", "onnx"] = "stablehlo",
  platforms: Sequence[str] = PLATFORMS,
) -> None:
  """Writes a released model as a program for another runtime.

  Args:
    folder: folder of the release; it is verified first.
    out: the file. A StableHLO program is read with
      `jax.export.deserialize(bytearray(path.read_bytes()))` and called with
      features [n, ...] for any n; it returns class ids and probabilities. An
      ONNX model has the input "x" and the outputs "labels" and "scores".
    to: "stablehlo" for any network, "onnx" for dense ones.
    platforms: platforms that the StableHLO program runs on; it can be written on any of them.
  """
  checks.one_of("to", to, SUFFIX)
  released = load(folder)
  program = stablehlo(released, platforms) if to == "stablehlo" else onnx_model(released)
  _whole_files.write_whole(pathlib.Path(out), program)


def stablehlo(released: Released, platforms: Sequence[str] = PLATFORMS) -> bytes:
  """The model as a serialized program that is compiled where it runs."""
  for platform in platforms:
    checks.one_of("platforms", platform, (*PLATFORMS, "rocm"))
  checks.require(bool(platforms), "platforms is empty; name at least one")
  (size,) = jax.export.symbolic_shape("n")
  one = jax.ShapeDtypeStruct((size, *released.shape), released.dtype)
  with _without_places():
    made = jax.export.export(jax.jit(released.traced), platforms=tuple(platforms))(one)
  return bytes(made.serialize())


@contextlib.contextmanager
def _without_places() -> Iterator[None]:
  """Leaves out the source files of operations, whose paths tell of the machine and its user."""
  name = "jax_traceback_in_locations_limit"
  before = getattr(jax.config, name)
  jax.config.update(name, 0)
  try:
    yield
  finally:
    jax.config.update(name, before)


def onnx_model(released: Released) -> bytes:
  """The model as ONNX; dense networks only."""
  name = released.network.name
  checks.require(
    name in DENSE,
    f"network={name!r} has no ONNX form here, which covers {', '.join(DENSE)}; export it to "
    "stablehlo",
  )
  try:
    import onnx
  except ImportError:
    raise checks.ArgumentError(
      "to='onnx' needs the package onnx; install it with `pip install 'jaxfair[onnx]'`"
    ) from None
  graph = _Graph(onnx)
  _features(graph, released)
  layers = [released.params] if name == "logistic" else [*released.params.values()]
  for layer in layers[:-1]:
    graph.add("Gemm", graph.last, layer["w"], layer["b"])
    graph.add(DENSE[name], graph.last)
  logits = graph.add("Gemm", graph.last, layers[-1]["w"], layers[-1]["b"])
  graph.add("Softmax", logits, name="scores", axis=-1)
  graph.add("ArgMax", logits, name="labels", axis=-1, keepdims=0)
  return graph.serialized(released)


def _features(graph: "_Graph", released: Released) -> None:
  """What `Released.prepare` does, on the flattened features of each person."""
  if released.scaler is not None:
    scaler, shape = released.scaler, released.shape
    flat = {k: np.broadcast_to(v, shape).ravel() for k, v in scaler._asdict().items()}
    rows = graph.add("Reshape", "x", np.array([0, int(np.prod(shape))], np.int64))
    filled = graph.add("Where", graph.add("IsNaN", rows), flat["fill"], rows)
    graph.add("Mul", graph.add("Sub", filled, flat["center"]), flat["factor"])
    if np.isfinite(scaler.limit):
      limit = np.float32(scaler.limit)
      graph.add("Clip", graph.last, -limit, limit)
  else:
    graph.add("Reshape", "x", np.array([0, int(np.prod(released.shape))], np.int64))
  if released.row_norm is not None:
    rows, radius = graph.last, np.float32(released.row_norm * (1 - 1e-6))
    length = graph.add("ReduceL2", rows, np.array([1], np.int64), keepdims=1)
    graph.add("Div", rows, graph.add("Max", graph.add("Div", length, radius), np.float32(1)))


class _Graph:
  """Nodes that are added one after the other; constants become initializers."""

  def __init__(self, onnx: Any):
    self._onnx = onnx
    self._nodes: list[Any] = []
    self._constants: list[Any] = []
    self.last = "x"

  def add(self, kind: str, *inputs: Any, name: str = "", **attributes: Any) -> str:
    """Adds an operation; strings name inputs, arrays are constants."""
    names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
    self.last = name or f"{kind}_{len(self._nodes)}"
    node = self._onnx.helper.make_node(kind, names, [self.last], **attributes)
    self._nodes.append(node)
    return self.last

  def serialized(self, released: Released) -> bytes:
    """The whole model, checked."""
    helper, types = self._onnx.helper, self._onnx.TensorProto
    described = [
      helper.make_tensor_value_info(name, kind, ["n", *shape])
      for name, kind, shape in (
        ("x", types.FLOAT, released.shape),
        ("labels", types.INT64, ()),
        ("scores", types.FLOAT, (len(released.class_names),)),
      )
    ]
    graph = helper.make_graph(
      self._nodes, released.method, described[:1], described[1:], self._constants
    )
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(
      graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="jaxfair"
    )
    self._onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())

  def _constant(self, value: Any) -> str:
    array = np.asarray(value)
    array = array.astype(np.float32) if array.dtype.kind == "f" else array
    name = f"constant_{len(self._constants)}"
    self._constants.append(self._onnx.numpy_helper.from_array(array, name))
    return name
