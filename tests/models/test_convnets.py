import jax
import numpy as np
import pytest
import scipy.stats

from jaxfair import checks, models, tree
from jaxfair.models import Conv

KEY = jax.random.key(0)


def shapes(model, *image):
  return jax.eval_shape(model.init, KEY, np.zeros(image, np.float32))


def test_the_small_network_has_the_stated_layers():
  params = shapes(models.convnet(10), 28, 28, 1)
  # 28 -> 14 -> 7
  assert params["Conv_0"]["kernel"].shape == (3, 3, 1, 16)
  assert params["Conv_1"]["kernel"].shape == (3, 3, 16, 32)
  assert params["logits"]["kernel"].shape == (7 * 7 * 32, 10)
  by_hand = (9 * 16 + 16) + (9 * 16 * 32 + 32) + (1568 * 10 + 10)
  assert tree.size(params) == by_hand == 20_490


def test_the_color_mnist_network_has_the_stated_layers():
  params = shapes(models.convnet_color_mnist(), 28, 28, 3)
  # 28 -> 24 -> 12 -> 8 -> 4
  assert params["Dense_0"]["kernel"].shape == (4 * 4 * 50, 500)
  by_hand = (75 * 20 + 20) + (500 * 50 + 50) + (800 * 500 + 500) + 5_010
  assert tree.size(params) == by_hand == 432_080


def test_the_celeba_network_has_the_layers_of_the_papers_table():
  params = shapes(models.convnet_celeba(), 256, 256, 3)
  channels = [params[f"Conv_{i}"]["kernel"].shape[2:] for i in range(4)]
  assert channels == [(3, 64), (64, 128), (128, 256), (256, 512)]
  assert params["Dense_0"]["kernel"].shape == (14 * 14 * 512, 1024)
  assert params["Dense_1"]["kernel"].shape == (1024, 256)
  assert params["logits"]["kernel"].shape == (256, 2)
  assert tree.size(params) == 104_575_362


def test_the_medium_network_has_three_and_three_layers():
  params = shapes(models.convnet_medium(9, width=16), 48, 48, 3)
  assert sorted(params) == ["Conv_0", "Conv_1", "Conv_2", "Dense_0", "Dense_1", "logits"]
  assert params["Dense_0"]["kernel"].shape == (6 * 6 * 64, 128)


@pytest.mark.slow
def test_a_small_network_by_hand():
  """One 3x3 kernel, pooling by 2, ReLU, one dense layer, in plain loops."""
  rng = np.random.default_rng(0)
  x = rng.normal(size=(2, 6, 6, 2)).astype(np.float32)
  model = models.convnet(3, [Conv(4, pool=2, padding="VALID")])
  params = model.init(KEY, x[0])
  kernel, bias = params["Conv_0"]["kernel"], rng.normal(size=4)
  params["Conv_0"]["bias"] = bias.astype(np.float32)

  maps = np.zeros((2, 4, 4, 4))
  for i in range(4):
    for j in range(4):
      patch = x[:, i : i + 3, j : j + 3, :]
      maps[:, i, j] = np.tensordot(patch, kernel, 3) + bias
  pooled = maps.reshape(2, 2, 2, 2, 2, 4).max(axis=(2, 4))
  flat = np.maximum(pooled, 0).reshape(2, -1)
  by_hand = flat @ params["logits"]["kernel"] + params["logits"]["bias"]
  np.testing.assert_allclose(model.apply(params, x), by_hand, rtol=1e-4, atol=1e-4)


def test_weights_start_with_the_stated_variance():
  params = models.convnet(10).init(KEY, np.zeros((28, 28, 1)))
  for layer, gain in (("Conv_1", 2), ("logits", 1)):
    w = np.asarray(params[layer]["kernel"], np.float64)
    fan_in = w.size / w.shape[-1]
    low, high = scipy.stats.chi2.ppf([5e-7, 1 - 5e-7], w.size)
    assert low < np.sum(w**2) * fan_in / gain < high
    assert not np.any(params[layer]["bias"])


@pytest.mark.slow
def test_integer_pixels_are_taken_as_numbers():
  model = models.convnet(2)
  x = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 1), np.uint8)
  params = model.init(KEY, x[0])
  np.testing.assert_array_equal(model.apply(params, x), model.apply(params, x.astype(np.float32)))


def test_sequences_of_any_kind_give_the_same_object():
  convs = [Conv(4), Conv(8)]
  assert models.convnet(2, convs, [5]) is models.convnet(2, tuple(convs), (5,))


@pytest.mark.parametrize(
  ("make", "message"),
  [
    (lambda: models.convnet(0), "num_classes=0"),
    (lambda: models.convnet(2, [Conv(0)]), "features=0 must be at least 1"),
    (lambda: models.convnet(2, [Conv(4, padding="same")]), "use one of SAME, VALID"),
    (lambda: models.convnet(2, hidden=[1.5]), "hidden=1.5 must be a whole"),
    (lambda: models.convnet_celeba(width=0), "width=0"),
    (lambda: models.convnet_medium(2, width=0), "width=0"),
  ],
)
def test_bad_arguments_are_refused(make, message):
  with pytest.raises(checks.ArgumentError, match=message):
    make()


@pytest.mark.parametrize("size", [8, 12])
def test_images_that_vanish_on_the_way_are_refused(size):
  with pytest.raises(checks.ArgumentError, match="use larger images"):
    shapes(models.convnet_color_mnist(), size, size, 3)


def test_another_image_size_than_at_init_is_refused():
  model = models.convnet(2)
  params = model.init(KEY, np.zeros((8, 8, 1)))
  with pytest.raises(checks.ArgumentError, match=r"x of shape \(1, 16, 16, 1"):
    model.apply(params, np.zeros((1, 16, 16, 1)))


@pytest.mark.slow
def test_standardized_kernels_and_bounded_activations_by_hand():
  net = models.convnet(2, (models.Conv(3),), activation="tempered_sigmoid", standardize=True)
  image = np.random.default_rng(0).normal(size=(1, 5, 5, 2)).astype(np.float32)
  params = jax.tree.map(lambda leaf: leaf + 0.3, net.init(jax.random.key(0), image[0]))
  kernel = np.asarray(params["Conv_0"]["kernel"], float)  # [3, 3, 2, 3]
  kernel = (kernel - kernel.mean((0, 1, 2))) / (kernel.std((0, 1, 2)) * np.sqrt(18))
  padded = np.pad(image[0].astype(float), ((1, 1), (1, 1), (0, 0)))
  maps = np.array(
    [[np.tensordot(padded[i : i + 3, j : j + 3], kernel, 3) for j in range(5)] for i in range(5)]
  )
  bounded = 1.58 / (1 + np.exp(-3 * (maps + 0.3))) - 0.71
  weights = jax.tree.map(np.asarray, params["logits"])
  expected = bounded.reshape(-1) @ weights["kernel"] + weights["bias"]
  np.testing.assert_allclose(net.apply(params, image)[0], expected, rtol=1e-4)
  moved = {**params, "Conv_0": {**params["Conv_0"], "kernel": 2 * params["Conv_0"]["kernel"] + 1}}
  np.testing.assert_allclose(net.apply(moved, image)[0], expected, rtol=1e-4)
