"""Configs: strict, round-tripping, with messages that name key and remedy."""

import dataclasses
import math
import pathlib
import string
import tomllib
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxfair import checks, experiments
from jaxfair.experiments import _config as configs
from jaxfair.experiments._config import ConfigError

ROOT = pathlib.Path(__file__).parents[2]


@dataclasses.dataclass(frozen=True)
class Inner:
  width: int = 3
  label: str = "a"
  parts: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class Outer:
  needed: int
  rate: float = 0.1
  name: str = "x"
  on: bool = False
  mode: Literal["fast", "slow"] = "fast"
  maybe: str | float | None = None
  words: tuple[str, ...] = ()
  inner: Inner = dataclasses.field(default_factory=Inner)
  several: tuple[Inner, ...] = ()

  def __post_init__(self) -> None:
    checks.positive("rate", self.rate)


numbers = st.floats(allow_nan=False)
inners = st.builds(Inner, width=st.integers(), label=st.text(), parts=st.lists(numbers).map(tuple))
outers = st.builds(
  Outer,
  needed=st.integers(-(2**63), 2**63 - 1),
  rate=st.floats(min_value=1e-300, allow_infinity=False),
  name=st.text(),
  on=st.booleans(),
  mode=st.sampled_from(["fast", "slow"]),
  maybe=st.none() | st.text() | numbers,
  words=st.lists(st.text()).map(tuple),
  inner=inners,
  several=st.lists(inners, max_size=3).map(tuple),
)


@given(outers)
def test_what_is_written_is_read_back(config):
  text = configs.dump(configs.plain(config))
  assert configs.build(Outer, tomllib.loads(text)) == config


values = st.recursive(
  st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.text() | numbers,
  lambda inner: st.lists(inner, max_size=3),
  max_leaves=5,
)
tables = st.recursive(
  st.dictionaries(st.text(), values, max_size=4),
  lambda inner: st.dictionaries(st.text(), inner | values, max_size=4),
  max_leaves=8,
)


@pytest.mark.slow
@given(tables)
def test_any_nested_values_are_written_as_toml(plain):
  assert tomllib.loads(configs.dump(plain)) == plain


def test_nan_and_infinity_are_toml():
  read = tomllib.loads(configs.dump({"a": math.nan, "b": -math.inf}))
  assert math.isnan(read["a"])
  assert read["b"] == -math.inf


def test_defaults_are_filled_in_and_whole_numbers_are_numbers():
  built = configs.build(Outer, {"needed": 1, "rate": 2})
  assert built == Outer(1, rate=2.0)
  assert isinstance(built.rate, float)


@pytest.mark.parametrize(
  ("wrong", "told"),
  [
    ({"ratee": 1}, r"^ratee: unknown key; use one of .*did you mean rate\?"),
    ({"inner": {"widht": 1}}, r"^inner\.widht: unknown key.*mean width\?"),
    ({"needed": "1"}, "^needed='1' must be a whole number"),
    ({"needed": 1.0}, r"^needed=1\.0 must be a whole number"),
    ({"needed": True}, "^needed=True must be a whole number"),
    ({"rate": True}, "^rate=True must be a number"),
    ({"rate": "fast"}, "^rate='fast' must be a number"),
    ({"rate": -1}, r"^rate=-1\.0 must be above 0"),
    ({"name": 3}, "^name=3 must be a string"),
    ({"on": 1}, "^on=1 must be true or false"),
    ({"mode": "fats"}, r"^mode='fats' is not known; use one of.*mean fast\?"),
    ({"words": "abc"}, "^words='abc' must be a list"),
    ({"words": ["a", 1]}, r"^words\[1\]=1 must be a string"),
    ({"inner": 3}, "^inner=3 must be a table"),
    ({"several": [{"width": "w"}]}, r"^several\[0\]\.width='w' must be a wh"),
    ({"maybe": ["a"]}, "must be a string or .* must be a number"),
  ],
)
def test_what_is_wrong_is_named(wrong, told):
  with pytest.raises(ConfigError, match=told):
    configs.build(Outer, {"needed": 1} | wrong)


def test_a_key_without_default_is_asked_for():
  with pytest.raises(ConfigError, match="needed: missing"):
    configs.build(Outer, {})


def test_messages_begin_with_the_place():
  with pytest.raises(ConfigError, match=r"^a\.toml: rate=-1\.0"):
    configs.build(Outer, {"needed": 1, "rate": -1.0}, where="a.toml: ")


TEXT = """
size = "small"
seeds = 20
[data]
name = "adult"
group = "sex"
[sizes.smoke]
seeds = 2
[sizes.small]
seeds = 5
data.name = "bank"
"""


@pytest.fixture
def path(tmp_path):
  path = tmp_path / "a.toml"
  path.write_text(TEXT)
  return path


def test_the_size_of_the_file_is_the_default(path):
  read = configs.read(path)
  assert read == {"size": "small", "seeds": 5, "data": {"name": "bank", "group": "sex"}}


def test_a_runs_own_config_is_taken_back(path, tmp_path):
  own = tmp_path / "config.toml"
  own.write_text(configs.dump(configs.read(path)))
  assert configs.read(own) == configs.read(path)


def test_a_size_replaces_values_table_by_table(path):
  read = configs.read(path, size="smoke")
  assert read["seeds"] == 2
  assert read["data"] == {"name": "adult", "group": "sex"}


def test_sets_come_last_and_take_toml_or_bare_words(path):
  sets = ["seeds=7", "data.name=wine", "data.drop=['a', \"b\"]", "new.on=true"]
  read = configs.read(path, sets=sets)
  assert read["seeds"] == 7
  assert read["data"] == {"name": "wine", "group": "sex", "drop": ["a", "b"]}
  assert read["new"] == {"on": True}


@given(st.text(string.printable))
def test_a_value_that_is_no_toml_is_taken_as_it_stands(text):
  value = configs._value(text)
  if isinstance(value, str) and value != text:
    assert text.strip()[0] in "\"'"  # TOML with quotation marks


@pytest.mark.parametrize(
  ("assignment", "told"),
  [
    ("seeds", "write it as key=value"),
    ("=3", "write it as key=value"),
    ("data..name=3", "write it as key=value"),
    ("seeds.more=3", "seeds is not a table"),
    ("size=smoke", "choose a size with --size"),
    ("sizes.smoke.seeds=1", "choose a size with --size"),
  ],
)
def test_impossible_sets_are_refused(path, assignment, told):
  with pytest.raises(ConfigError, match=told):
    configs.read(path, sets=[assignment])


@pytest.mark.parametrize(
  ("text", "size", "told"),
  [
    (TEXT, "paper", r"size='paper' is not known; use one of smoke, small"),
    ("a = 1", "smoke", r"size='smoke': this config has no sizes"),
    ("size = [1]\n[sizes.smoke]\na = 1", None, r"size=\[1\] is not known"),
    ("[sizes.huge]\na = 1", None, "use tables named smoke, small, paper"),
    ("[sizes]\nsmoke = 3", None, "use tables named"),
    ("sizes = 3", None, "use tables named"),
    ("a = ", None, "not valid TOML"),
    ("a = 1\na = 2", None, "not valid TOML"),
    ("a = " + "9" * 5000, None, "not valid TOML"),
    ("a = " + "9" * 400, None, "a=<a whole number of 1329 bits> must be"),
    ("a = [1, {b = 0x1" + "0" * 16 + "}]", None, r"a\[1\]\.b=1844674407370955"),
    ("a = -9223372036854775809", None, "at most 64 bits"),
    ('a = "x\\u0000y"', None, "has a NUL"),
    ('"a\\u0000" = 1', None, "has a NUL"),
    ("a = " + "[" * 50_000, None, "nest too deeply"),
    ("a = 1979-05-27\n[sizes.smoke]\n", "pape", "size='pape' is not known"),
  ],
)
def test_a_wrong_file_is_one_line_with_its_path(tmp_path, text, size, told):
  path = tmp_path / "wrong.toml"
  path.write_text(text)
  with pytest.raises(ConfigError, match=told) as caught:
    configs.read(path, size=size)
  assert str(caught.value).startswith(str(path))
  assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path):
  path = tmp_path / "wrong.toml"
  path.write_bytes(b"a = '\xff'")
  with pytest.raises(ConfigError, match="not valid TOML"):
    configs.read(path)


def test_of_many_configs_the_nearest_are_named(tmp_path, monkeypatch):
  folder = tmp_path / "configs" / "train"
  folder.mkdir(parents=True)
  (tmp_path / ".ruff.toml").write_text("")
  for name in [*(f"a{i}" for i in range(20)), "dp_sgd_adult"]:
    (folder / f"{name}.toml").write_text("")
  monkeypatch.chdir(tmp_path)
  with pytest.raises(ConfigError, match=r"did you mean .*sgd_adult") as told:
    configs.read(pathlib.Path("configs/train/dp_sgd_adlt.toml"))
  assert "ruff" not in str(told.value)


def test_a_missing_file_names_its_neighbors(path, monkeypatch, tmp_path):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(ConfigError, match=r"no such config file; .*a\.toml"):
    configs.read(path.with_name("b.toml"))
  with pytest.raises(ConfigError, match=r"no such config file$"):
    configs.read(tmp_path / "nowhere" / "b.toml")


def test_the_file_system_is_not_searched_for_neighbors(monkeypatch, tmp_path):
  (tmp_path / "deep").mkdir()
  (tmp_path / "deep" / "c.toml").write_text("")
  monkeypatch.chdir(tmp_path / "deep")
  with pytest.raises(ConfigError, match=r"no such config file$"):
    configs.read(tmp_path / "b.toml")


@pytest.mark.parametrize(
  ("assignment", "told"),
  [
    ("seeds=0x" + "f" * 5000, "a whole number of 20000 bits"),
    ("name=\udc80", "half a character"),
    ("na\udc80me=1", "half a character"),
    ("name=a\0", "has a NUL"),
    ("name=" + "[" * 50_000, "nest too deeply"),
    ("x" * 10**6, "write it as key=value"),
  ],
)
def test_a_set_that_no_config_could_hold_is_one_short_line(path, assignment, told):
  with pytest.raises(ConfigError, match=told) as caught:
    configs.read(path, sets=[assignment])
  assert str(caught.value).startswith("--set ")
  assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
  ("line", "told"),
  [
    ("seedz = 2", "seedz: unknown key"),
    ("data.nam = 'x'", r"data\.nam: unknown key"),
    ("seeds = 'x'", "seeds='x' must be a whole number"),
    ("seed = 'x'", "seed='x' must be"),
    ("title = 1979-05-27", r"title=datetime\.date\(1979, 5, 27\) must be"),
    ("study = 'methods'", "study: unknown key"),
  ],
)
def test_a_size_that_is_not_chosen_is_checked_too(tmp_path, line, told):
  path = tmp_path / "a.toml"
  path.write_text(f'study = "methods"\n[sizes.smoke]\nseeds = 2\n[sizes.paper]\n{line}\n')
  with pytest.raises(ConfigError, match=rf"a\.toml: sizes\.paper\.{told}"):
    experiments.load(path, size="smoke")


@pytest.mark.slow
def test_every_config_loads_in_every_size():
  paths = sorted((ROOT / "configs").rglob("[!_]*.toml"))
  assert len(paths) > 100
  for path in paths:
    for size in configs._extended(path, ()).get("sizes", {None: {}}):
      assert experiments.load(path, size=size).size == size


def test_a_config_extends_another_table_by_table(tmp_path):
  (tmp_path / "base.toml").write_text(
    "study='s'\na=1\n[data]\nname='x'\ngroup='g'\n[sizes.smoke]\na=0"
  )
  (tmp_path / "deep").mkdir()
  own = tmp_path / "deep" / "own.toml"
  own.write_text("extends='../base.toml'\n[data]\nname='y'\n[sizes.smoke]\nb=2")
  assert configs.read(own) == {"study": "s", "a": 1, "data": {"name": "y", "group": "g"}}
  assert configs.read(own, size="smoke")["b"] == 2
  assert configs.read(own, size="smoke")["a"] == 0


@pytest.mark.parametrize(
  ("text", "told"),
  [
    ("extends='own.toml'", "extends leads back to itself"),
    ("extends=3", "extends=3 must be the path of a config file"),
    ("extends='none.toml'", "none.toml: no such config file"),
  ],
)
def test_an_extension_that_cannot_be_is_refused(tmp_path, text, told):
  (tmp_path / "own.toml").write_text(text)
  with pytest.raises(configs.ConfigError, match=told):
    configs.read(tmp_path / "own.toml")
