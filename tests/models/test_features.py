"""Features are computed once, in chunks, and found again by content alone."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks, data, models
from jaxfair.models import _features
from jaxfair.types import Examples

WEIGHTS = {"w": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)}


@pytest.fixture
def people():
  rng = np.random.default_rng(0)
  x = rng.random((11, 4, 4, 2), np.float32)
  y = np.arange(11, dtype=np.int32) % 2
  return data.Dataset("toy", Examples(x, y, y), ("no", "yes"), ("a", "b"))


@pytest.fixture
def counted():
  """An extractor that counts the programs it is traced for."""
  calls = []

  def apply(params, x):
    calls.append(x.shape)
    return jnp.mean(x, axis=(1, 2)) @ params["w"]

  return _features.Extractor("mean", WEIGHTS, apply), calls


def test_features_replace_the_images_and_everything_else_stays(people, counted, tmp_path):
  extractor, calls = counted
  seen = []
  found = models.embed(
    people, extractor, folder=tmp_path, chunk_size=4, progress=lambda *at: seen.append(at)
  )
  expected = people.examples.x.mean((1, 2)) @ WEIGHTS["w"]
  np.testing.assert_allclose(found.examples.x, expected, rtol=1e-5, atol=1e-6)
  np.testing.assert_array_equal(found.examples.y, people.examples.y)
  assert found.class_names == people.class_names
  assert found.feature_names == ("mean.0", "mean.1", "mean.2")
  assert seen[0] == (0, 11)
  assert seen[-1] == (11, 11)
  assert {shape[0] for shape in calls} == {4}  # bounded: never everybody at once
  assert isinstance(found.examples.x, np.memmap)


def test_found_again_by_content(people, counted, tmp_path):
  extractor, calls = counted
  models.embed(people, extractor, folder=tmp_path)
  before = len(calls)
  renamed = dataclasses.replace(people, name="other")
  again = models.embed(renamed, extractor, folder=tmp_path)
  assert len(calls) == before
  assert again.name == "other"
  changed = people.examples.x.copy()
  changed[3, 0, 0, 0] += 0.5
  others = {
    "an image": (
      dataclasses.replace(people, examples=people.examples._replace(x=changed)),
      extractor,
    ),
    "a weight": (people, extractor._replace(params={"w": WEIGHTS["w"] + 1})),
    "the name": (people, extractor._replace(name="other")),
  }
  for what, (own, other) in others.items():
    before = len(list(tmp_path.iterdir()))
    models.embed(own, other, folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == before + 1, what


def test_a_run_that_was_cut_leaves_nothing_behind(people, counted, tmp_path):
  def stop(done, total):
    if done > 4:
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    models.embed(people, counted[0], folder=tmp_path, chunk_size=4, progress=stop)
  assert not list(tmp_path.iterdir())
  assert models.embed(people, counted[0], folder=tmp_path).size == 11
  assert tmp_path.stat().st_mode & 0o077 == 0  # as private as the images


def test_refuses_what_is_no_image_set(people, counted, tmp_path):
  flat = dataclasses.replace(
    people,
    examples=people.examples._replace(x=np.zeros((11, 2), np.float32)),
    feature_names=("a", "b"),
    columns=("a", "b"),
  )
  with pytest.raises(checks.ArgumentError, match="toy has no images"):
    models.embed(flat, counted[0], folder=tmp_path)
  broken = counted[0]._replace(apply=lambda params, x: jnp.full((len(x), 2), jnp.nan))
  with pytest.raises(checks.ArgumentError, match="not finite"):
    models.embed(people, broken, folder=tmp_path)
  with pytest.raises(checks.ArgumentError, match="features='alexnet'"):
    models.extractor("alexnet")
  assert models.extractor("scattering") == models.scattering()
  assert models.extractor("moment_scattering") == models.scattering(moments=(5.5, 3.6))


def test_with_head_starts_at_the_extractors_parameters(people, counted):
  extractor, _ = counted
  model = models.with_head(extractor, models.logistic(2))
  x = people.examples.x
  params = model.init(jax.random.key(0), x[0])
  params["head"] = {"w": jnp.ones((3, 2)), "b": jnp.zeros(2)}
  np.testing.assert_allclose(
    model.apply(params, x), extractor(x) @ np.ones((3, 2)), rtol=1e-5, atol=1e-6
  )
