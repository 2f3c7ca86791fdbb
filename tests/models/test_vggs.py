import jax
import numpy as np
import pytest

from jaxfair import checks, models, tree

KEY = jax.random.key(0)


def shapes(model, *image):
  return jax.eval_shape(model.init, KEY, np.zeros(image, np.float32))


# The published sizes for 1,000 classes with normalized convolutions.
@pytest.mark.parametrize(("depth", "size"), [(13, 133_053_736), (19, 143_678_248)])
def test_size_is_the_published_one(depth, size):
  assert tree.size(shapes(models.vgg(depth, 1000), 224, 224, 3)) == size


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "convs"), [(13, 10), (19, 16)])
def test_number_of_layers(depth, convs):
  model = models.vgg(depth, 10, width=4)
  params = shapes(model, 64, 64, 3)
  program = jax.make_jaxpr(model.apply)(params, np.zeros((1, 64, 64, 3)))
  names = [eqn.primitive.name for eqn in program.jaxpr.eqns]
  assert names.count("conv_general_dilated") == convs
  assert names.count("dot_general") == 3
  assert names.count("reduce_window_max") == 5


@pytest.mark.slow
@pytest.mark.parametrize(("pixels", "left"), [(28, 1), (32, 1), (48, 2)])
def test_small_images_survive_five_poolings(pixels, left):
  params = shapes(models.vgg(13, 10, width=4), pixels, pixels, 1)
  assert params["Dense_0"]["kernel"].shape == (left * left * 32, 256)


@pytest.mark.parametrize(
  ("make", "message"),
  [
    (lambda: models.vgg(16, 10), "depth=16 is not known; use one of 13, 19"),
    (lambda: models.vgg(13, 0), "num_classes=0"),
    (lambda: models.vgg(13, 10, width=5), "multiple of 4; use 8"),
  ],
)
def test_bad_arguments_are_refused(make, message):
  with pytest.raises(checks.ArgumentError, match=message):
    make()
