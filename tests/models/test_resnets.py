import jax
import numpy as np
import pytest

from jaxfair import checks, models, tree

KEY = jax.random.key(0)


def shapes(model, *image):
  return jax.eval_shape(model.init, KEY, np.zeros(image, np.float32))


def count(model, params, name, *image):
  program = jax.make_jaxpr(model.apply)(params, np.zeros((1, *image)))
  return sum(eqn.primitive.name == name for eqn in program.jaxpr.eqns)


# The published sizes for 1,000 classes, with BatchNorm's scale and bias, of
# which GroupNorm has as many. The thesis says about 11 and 25 million.
@pytest.mark.slow
@pytest.mark.parametrize(("depth", "size"), [(18, 11_689_512), (50, 25_557_032)])
def test_size_is_the_published_one(depth, size):
  model = models.resnet(depth, 1000, small_images=False)
  assert tree.size(shapes(model, 224, 224, 3)) == size


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "convs"), [(18, 16 + 4), (50, 48 + 5)])
def test_number_of_convolutions(depth, convs):
  """Those of the blocks, the first one, and the projected shortcuts."""
  model = models.resnet(depth, 10, width=4)
  params = shapes(model, 32, 32, 3)
  assert count(model, params, "conv_general_dilated", 32, 32, 3) == convs


@pytest.mark.slow
@pytest.mark.parametrize(("small_images", "size", "last"), [(True, 32, 4), (False, 224, 7)])
def test_the_last_maps_have_the_papers_size(small_images, size, last):
  model = models.resnet(18, 10, width=4, small_images=small_images)
  params = shapes(model, size, size, 3)
  program = jax.make_jaxpr(model.apply)(params, np.zeros((1, size, size, 3)))
  maps = [
    eqn.outvars[0].aval.shape
    for eqn in program.jaxpr.eqns
    if eqn.primitive.name == "conv_general_dilated"
  ]
  assert maps[-1] == (1, last, last, 32)
  assert maps[0][1] == (size if small_images else size // 2)


def test_small_images_change_the_first_kernel_only():
  small, large = (
    shapes(models.resnet(18, 10, width=8, small_images=choice), 64, 64, 3)
    for choice in (True, False)
  )
  assert tree.size(large) - tree.size(small) == (49 - 9) * 3 * 8


@pytest.mark.parametrize(
  ("make", "message"),
  [
    (lambda: models.resnet(34, 10), "depth=34 is not known; use one of 18, 50"),
    (lambda: models.resnet(18, 0), "num_classes=0"),
    (lambda: models.resnet(18, 10, width=6), "multiple of 4; use 8"),
  ],
)
def test_bad_arguments_are_refused(make, message):
  with pytest.raises(checks.ArgumentError, match=message):
    make()
