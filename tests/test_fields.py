"""Fields that may hold one value or many."""

from typing import Literal

import pytest

from jaxfair import _fields, checks
from jaxfair import experiments as ex
from jaxfair.experiments._config import ConfigError, build


class Config(ex.Settings):
  """Settings with such a field."""

  epsilon: _fields.OneOrMany[ex.Positive] = (1.0, 2.0)


@pytest.mark.parametrize(("given", "values"), [(3, (3.0,)), ([1, 2.5], (1.0, 2.5))])
def test_one_value_or_many_are_a_list(given, values):
  config = build(Config, {"epsilon": given})
  assert _fields.several(config.epsilon) == values


@pytest.mark.parametrize(
  ("given", "told"),
  [
    (0.0, "epsilon=0.0 must be above 0"),
    ([1.0, 0.0], "epsilon=0.0 must be above 0"),
    ([], "epsilon is empty"),
    ([1.0, 1.0], "epsilon=.* names something twice"),
    (["a"], r"epsilon\[0\]='a' must be a number"),
    ("a", "epsilon='a' must be a number"),
  ],
)
def test_both_forms_are_checked(given, told):
  with pytest.raises(ConfigError, match=told):
    build(Config, {"epsilon": given})


class Shared(_fields.Settings):
  """Settings with a field of two kinds."""

  devices: int | Literal["all"] | None = None


def test_a_number_or_a_word():
  assert build(Shared, {"devices": 3}).devices == 3
  assert [Shared(devices=value).devices for value in (None, 3, "all")] == [None, 3, "all"]
  with pytest.raises(checks.ArgumentError, match="devices='many' is not known; use one of all"):
    Shared(devices="many")
  with pytest.raises(ConfigError, match="use one of all"):
    build(Shared, {"devices": "some"})
