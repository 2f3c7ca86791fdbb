"""Masks against counting by hand, and what they refuse."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks, models, pruning
from jaxfair.models import Conv
from jaxfair.pruning import _masks

RNG = np.random.default_rng(0)
TWO = {
  "first": {"w": np.float32([[1, -2], [3, -4]]), "b": np.zeros(2, np.float32)},
  "second": {"w": np.float32([[0.5], [-5]]), "b": np.ones(1, np.float32)},
}
NET = models.convnet(3, (Conv(4), Conv(6)), ())
KERNELS = NET.init(jax.random.key(0), jnp.zeros((6, 6, 1)))


def test_global_masks_rank_all_layers_together():
  masks = pruning.magnitude_masks(TWO, 0.5)
  np.testing.assert_array_equal(masks["first"]["w"], [[False, False], [1, 1]])
  np.testing.assert_array_equal(masks["second"]["w"], [[False], [True]])
  assert masks["first"]["b"].all()  # biases are no candidates
  assert masks["second"]["b"].all()


def test_layer_masks_rank_each_layer_by_itself():
  masks = pruning.magnitude_masks(TWO, 0.5, scope="layer")
  np.testing.assert_array_equal(masks["first"]["w"], [[False, False], [1, 1]])
  np.testing.assert_array_equal(masks["second"]["w"], [[False], [True]])
  least = pruning.magnitude_masks(TWO, 0.3, scope="layer")
  assert int(least["first"]["w"].sum()) == 3  # floor(0.3 * 4) = 1 is gone
  assert least["second"]["w"].all()  # floor(0.3 * 2) = 0


@hypothesis.given(
  rate=st.floats(0, 1, exclude_max=True, allow_subnormal=False),
  values=st.lists(st.integers(-3, 3), min_size=12, max_size=12),
)
@hypothesis.settings(max_examples=40)
def test_the_floor_of_the_share_goes_and_nothing_larger_stays_behind(rate, values):
  weights = np.float32(values)[:, None]  # with ties, and with zeros
  keep = np.asarray(pruning.magnitude_masks({"w": weights}, rate)["w"])
  assert (~keep).sum() == int(np.floor(rate * len(values) + 1e-9))
  if keep.any() and not keep.all():
    assert np.abs(weights[~keep]).max() <= np.abs(weights[keep]).min()


def test_a_higher_rate_keeps_a_part_of_what_a_lower_one_keeps():
  rates = (0.0, 0.29, 0.5, 0.9)
  masks = _masks.masks_at_rates(KERNELS, rates)
  kernels = [leaf for leaf in jax.tree.leaves(masks) if leaf.ndim > 2]
  total = sum(leaf[0].size for leaf in kernels)
  for i, rate in enumerate(rates):
    gone = sum(int((~leaf[i]).sum()) for leaf in kernels)
    assert gone == int(rate * total + 1e-9)
    alone = pruning.magnitude_masks(KERNELS, rate)
    jax.tree.map(lambda one, many, i=i: np.testing.assert_array_equal(one, many[i]), alone, masks)
  for leaf in kernels:
    assert not np.any(leaf[1:] & ~leaf[:-1])


@pytest.mark.parametrize("norm", pruning._masks.NORMS)
def test_filters_go_whole_and_take_their_bias(norm):
  masks = pruning.magnitude_masks(KERNELS, 0.5, scope="layer", unit="filter", norm=norm)
  order = {"l1": 1, "l2": 2}[norm]
  for layer in ("Conv_0", "Conv_1"):
    kernel = np.asarray(KERNELS[layer]["kernel"])
    flat = kernel.reshape(-1, kernel.shape[-1])
    sizes = np.linalg.norm(flat, ord=order, axis=0)
    expected = sizes >= np.median(sizes)
    np.testing.assert_array_equal(masks[layer]["bias"], expected)
    np.testing.assert_array_equal(masks[layer]["kernel"], np.broadcast_to(expected, kernel.shape))
  assert all(leaf.all() for leaf in jax.tree.leaves(masks["logits"]))


def test_no_layer_loses_all_its_filters():
  small = {**KERNELS}
  small["Conv_0"] = jax.tree.map(lambda v: 1e-3 * v, KERNELS["Conv_0"])
  masks = pruning.magnitude_masks(small, 0.9, unit="filter")
  assert int(masks["Conv_0"]["bias"].sum()) == 1
  assert int(masks["Conv_1"]["bias"].sum()) == 1  # ten filters, nine asked for


def test_global_filters_are_ranked_per_weight():
  params = {
    "a": {"kernel": jnp.full((1, 1, 1, 2), 2.0)},  # l2 of a filter: 2
    "b": {"kernel": jnp.ones((3, 3, 4, 2))},  # l2 of a filter: 6
  }
  masks = pruning.magnitude_masks(params, 0.25, unit="filter")
  assert masks["a"]["kernel"].all()
  assert int(masks["b"]["kernel"][0, 0, 0].sum()) == 1


@pytest.mark.slow
def test_a_pruned_network_is_plain_parameters():
  masks = pruning.magnitude_masks(KERNELS, 0.7)
  pruned = pruning.apply_masks(KERNELS, masks)
  assert jax.tree.structure(pruned) == jax.tree.structure(KERNELS)
  assert NET.apply(pruned, jnp.zeros((2, 6, 6, 1))).shape == (2, 3)
  assert 0 < masks["Conv_1"]["kernel"].mean() < 1
  assert masks["Conv_1"]["bias"].all()


@pytest.mark.parametrize("rate", [1.0, -0.1, 1.5, float("nan")])
def test_rates_outside_of_the_unit_interval_are_refused(rate):
  with pytest.raises(checks.ArgumentError, match=r"must be in \[0, 1\)"):
    pruning.magnitude_masks(TWO, rate)


def test_masks_of_another_network_are_refused():
  masks = pruning.magnitude_masks(TWO, 0.5)
  with pytest.raises(checks.ArgumentError, match="structure"):
    pruning.apply_masks(KERNELS, masks)
  wrong = {**masks, "second": {"w": np.ones((3, 1), bool), "b": masks["second"]["b"]}}
  with pytest.raises(checks.ArgumentError, match=r"has shape \(3, 1\)"):
    pruning.apply_masks(TWO, wrong)
  floats = jax.tree.map(lambda leaf: leaf * 1.0, masks)
  with pytest.raises(checks.ArgumentError, match="True for what is kept"):
    pruning.apply_masks(TWO, floats)


def test_a_network_without_filters_is_refused():
  with pytest.raises(checks.ArgumentError, match="convolution kernels"):
    pruning.magnitude_masks(TWO, 0.5, unit="filter")
