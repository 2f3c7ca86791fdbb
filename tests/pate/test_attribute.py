"""What SF-PATE refuses, and what its votes cost."""

import math

import jax
import numpy as np
import pytest

from jaxfair import accounting, checks
from jaxfair.accounting import _gaussian
from jaxfair.pate import _attribute
from jaxfair.types import Examples

KEY = jax.random.key(3)


def people(n=600, num_groups=2, seed=0):
  rng = np.random.default_rng(seed)
  group = rng.integers(0, num_groups, n).astype(np.int32)
  x = rng.normal(size=(n, 3)).astype(np.float32)
  x[:, 0] += group  # tells something, not all
  return Examples(x, rng.integers(0, 2, n).astype(np.int32), group)


def deal(who, rows=None, teachers=20, num_groups=2):
  return _attribute.deal(who, teachers, num_groups=num_groups, key=KEY, rows=rows)


def test_parts_do_not_depend_on_the_groups():
  who = people()
  other = who._replace(group=1 - who.group)
  np.testing.assert_array_equal(deal(who).x, deal(other).x)
  assert deal(who).y.shape == (20, 30)


def test_a_stratified_partition_is_refused():
  who = people()
  order = np.argsort(who.group, kind="stable")  # dealt like cards, by group
  with pytest.raises(checks.ArgumentError, match="looks stratified by the pri"):
    deal(who, rows=order.reshape(30, 20).T)
  with pytest.raises(checks.ArgumentError, match="looks sorted by the private"):
    deal(who, rows=order.reshape(20, 30))


def test_partitions_at_random_pass_and_are_used():
  who = people()
  for seed in range(200):
    rows = np.random.default_rng(seed).permutation(600).reshape(20, 30)
    _attribute.check_rows(rows, who, 20, 2)
  np.testing.assert_array_equal(deal(who, rows=rows).x, who.x[rows])


def test_overlaps_and_strangers_are_refused():
  rows = np.arange(600).reshape(20, 30)
  rows[0, 0] = 599
  with pytest.raises(checks.ArgumentError, match="contains a person twice"):
    deal(people(), rows=rows)
  with pytest.raises(checks.ArgumentError, match=r"must lie in 0\.\.599"):
    deal(people(), rows=rows + 600)
  with pytest.raises(checks.ArgumentError, match=r"\[20, n\] row numbers"):
    deal(people(), rows=rows.T)


@pytest.mark.parametrize("num_groups", [2, 3])
def test_the_attribute_may_not_be_an_input(num_groups):
  who = people(num_groups=num_groups)
  deal(who, num_groups=num_groups)
  for code in (who.group, -5.0 * who.group, who.group == 1):
    x = np.column_stack([who.x, code]).astype(np.float32)
    with pytest.raises(checks.ArgumentError, match=r"feature 3 .* an input"):
      deal(who._replace(x=x), num_groups=num_groups)


def test_people_beyond_the_first_few_count_as_well():
  who = people(3 * _attribute.LOOK)
  code = np.where(who.group == 1, 1.0, -1.0)
  told = np.column_stack([who.x, code]).astype(np.float32)
  with pytest.raises(checks.ArgumentError, match=r"feature 3 .* group 0"):
    _attribute.check_people(who._replace(x=told), 2)
  told[-1, 3] *= -1  # the last one is no longer told
  _attribute.check_people(who._replace(x=told), 2)
  # Among the first few there is only one of the groups.
  order = np.argsort(who.group, kind="stable")
  sorted_ = who._replace(x=told, group=who.group).take(order)
  _attribute.check_people(sorted_, 2)
  sorted_.x[:, 3] = sorted_.group
  with pytest.raises(checks.ArgumentError, match=r"feature 3 .* group 0"):
    _attribute.check_people(sorted_, 2)
  # Whole numbers are features, too.
  whole = sorted_._replace(x=sorted_.x.astype(np.int32))
  with pytest.raises(checks.ArgumentError, match=r"feature 3 .* group 0"):
    _attribute.check_people(whole, 2)


def test_few_people_may_be_told_apart_by_chance():
  who = people()
  who.group[:] = 0
  who.group[np.argsort(who.x[:, 1])[-9:]] = 1  # the nine largest
  _attribute.check_people(who, 2)
  who.group[np.argsort(who.x[:, 1])[-10:]] = 1
  with pytest.raises(checks.ArgumentError, match=r"feature 1 .* an input"):
    _attribute.check_people(who, 2)


def test_a_group_in_no_part_is_refused():
  with pytest.raises(checks.ArgumentError, match=r"group \[2\] is in no teach"):
    deal(people(), num_groups=3)
  # In the data, but only where no teacher looks.
  who = people(605)
  who.group[600:] = 2
  rows = np.random.default_rng(0).permutation(600).reshape(20, 30)
  with pytest.raises(checks.ArgumentError, match=r"group \[2\] is in no teach"):
    deal(who, rows=rows, num_groups=3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("queries", [1, 300])
def test_votes_cost_what_was_asked_for(epsilon, queries):
  sigma = _attribute.vote_sigma(epsilon=epsilon, delta=1e-5, queries=queries)
  found = _attribute.vote_guarantee(sigma=sigma, queries=queries, delta=1e-5)
  assert 0.97 * epsilon < found.epsilon <= epsilon * (1 + 1e-9)
  assert found.relation is accounting.Relation.ATTRIBUTE
  # The histogram of all counts, released by one exact Gaussian, costs no more.
  exact = _gaussian.gaussian_epsilon(sigma=sigma, delta=1e-5, sensitivity=math.sqrt(2 * queries))
  assert exact <= found.epsilon
  assert exact > 0.7 * epsilon


def test_answers_given_several_times_are_all_charged():
  once = [_attribute.vote_guarantee(sigma=s, queries=50, delta=1e-5).epsilon for s in (20.0, 40.0)]
  both = _attribute.vote_guarantee(sigma=(20.0, 40.0), queries=50, delta=1e-5).epsilon
  rho = 50 / 20.0**2 + 50 / 40.0**2
  assert both == pytest.approx(accounting.zcdp_epsilon(rho=rho, delta=1e-5), rel=1e-2)
  assert max(once) < both < sum(once)
