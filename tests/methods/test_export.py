"""Exported programs predict as the release does."""

import builtins
import pathlib

import jax
import numpy as np
import pytest

from jaxfair import checks, data, methods
from jaxfair.methods import _export, _released

from .test_released import released

X = np.random.default_rng(3).normal(size=(9, 3)).astype(np.float32) * [1, 10, 100]
X[2, 1] = np.nan


def moved(own):
  """With parameters that tell classes apart."""
  rng = np.random.default_rng(4)
  params = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape).astype(np.float32), own.params)
  return type(own)(**{**vars(own), "params": params})


def variants():
  minmax = data.fit_scaler(np.arange(12, dtype=np.float32).reshape(4, 3), "minmax")
  return [
    moved(released("logistic")),
    moved(released("mlp", scaler=minmax)),
    moved(released("tanh_mlp", row_norm=0.5)),
  ]


@pytest.mark.slow
@pytest.mark.parametrize("own", variants(), ids=lambda own: own.network.name)
def test_stablehlo_predicts_the_same(own, tmp_path):
  own.save(tmp_path / "release")
  methods.export(tmp_path / "release", tmp_path / "model.stablehlo")
  program = jax.export.deserialize(bytearray((tmp_path / "model.stablehlo").read_bytes()))
  assert program.platforms == ("cpu", "cuda", "tpu")
  expected = own.answer(X)
  for size in (1, 9):
    labels, scores = program.call(X[:size].astype(np.float32))
    np.testing.assert_array_equal(labels, expected[0][:size])
    np.testing.assert_allclose(scores, expected[1][:size], rtol=1e-5, atol=1e-7)
  assert len(set(expected[0].tolist())) == 2


@pytest.mark.slow
def test_no_path_of_this_machine_is_exported(tmp_path):
  """Where jaxfair lies tells of the user; operations would name their source files."""
  own = moved(released("mlp"))
  own.answer(X)  # traced before
  before = jax.config.jax_traceback_in_locations_limit
  program = _export.stablehlo(own, ["cpu"])
  assert jax.config.jax_traceback_in_locations_limit == before
  folder = pathlib.Path(methods.__file__).parent
  for part in (str(folder), folder.parts[1], "_released.py"):
    assert part.encode() not in program


@pytest.mark.slow
@pytest.mark.parametrize("own", variants(), ids=lambda own: own.network.name)
def test_onnx_predicts_the_same(own):
  import onnxruntime

  session = onnxruntime.InferenceSession(
    _export.onnx_model(own), providers=["CPUExecutionProvider"]
  )
  expected = own.answer(X)
  for size in (1, 9):
    labels, scores = session.run(["labels", "scores"], {"x": X[:size].astype(np.float32)})
    np.testing.assert_array_equal(labels, expected[0][:size])
    np.testing.assert_allclose(scores, expected[1][:size], rtol=1e-4, atol=1e-6)


def test_what_cannot_be_exported_is_refused(tmp_path, monkeypatch):
  own = released()
  with pytest.raises(checks.ArgumentError, match="stablehlo"):
    _export.onnx_model(type(own)(**{**vars(own), "network": _released.Network("convnet", 2)}))
  with pytest.raises(checks.ArgumentError, match="platforms"):
    _export.stablehlo(own, ("abacus",))
  with pytest.raises(checks.ArgumentError, match="to="):
    methods.export(tmp_path, tmp_path / "x", to="paper")
  real = builtins.__import__

  def missing(name, *rest):
    if name == "onnx":
      raise ImportError
    return real(name, *rest)

  monkeypatch.setattr(builtins, "__import__", missing)
  with pytest.raises(checks.ArgumentError, match=r"jaxfair\[onnx\]"):
    _export.onnx_model(own)
