"""Tables: CSV round trips, selections, and missing values."""

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxfair import checks
from jaxfair.experiments import Table
from jaxfair.experiments._folders import RunError

# NumPy's strings cannot end in NUL; everything else must survive.
texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"))
names = st.lists(texts, min_size=1, max_size=4, unique=True)


@st.composite
def tables(draw):
  size = draw(st.integers(1, 5))
  column = st.lists(st.floats(), min_size=size, max_size=size) | st.lists(
    texts, min_size=size, max_size=size
  )
  return Table({name: draw(column) for name in draw(names)})


def same(a: Table, b: Table) -> bool:
  if a.names != b.names or len(a) != len(b):
    return False
  for name in a.names:
    if a[name].dtype.kind != b[name].dtype.kind:
      return False
    numbers = a[name].dtype.kind == "f"
    if not np.array_equal(a[name], b[name], equal_nan=numbers):
      return False
  return True


@given(tables())
def test_csv_keeps_every_value_and_type(table):
  assert same(Table.from_csv(table.to_csv()), table)


@given(tables())
def test_a_file_keeps_every_value_and_type(tmp_path_factory, table):
  path = tmp_path_factory.mktemp("tables") / "a.csv"
  path.write_bytes(table.to_csv().encode())
  assert same(Table.read(path), table)


def test_awkward_cells_survive():
  awkward = ['a"b', "a,b", "a\nb", "a\r\nb", "1", "1.0", "nan", "", " x "]
  values = [0.1, math.nan, math.inf, -math.inf, 1e300, 5e-324, -2, 3, 1e15]
  table = Table({"text": awkward, "value": values})
  again = Table.from_csv(table.to_csv())
  assert again["text"].tolist() == awkward
  np.testing.assert_array_equal(again["value"], values)


def test_whole_numbers_are_written_short():
  written = Table({"a": [3.0, 1e300, 0.5]}).to_csv()
  assert written == '"a"\n3\n1e+300\n0.5\n'


def test_a_table_without_rows_or_columns_survives():
  assert Table.from_csv(Table({"a": [], "b": []}).to_csv()).names == ("a", "b")
  assert Table.from_csv(Table({}).to_csv()).names == ()
  assert Table.from_csv("").names == ()


def test_arrays_are_laid_out_over_their_axes():
  table = Table.from_arrays(
    {"model": "m"},
    {"seed": [0, 1], "group": ["a", "b", "c"]},
    {"cell": np.arange(6).reshape(2, 3), "per_seed": [10, 20], "all": 7},
  )
  assert list(table.rows())[4] == {
    "model": "m",
    "seed": 1,
    "group": "b",
    "cell": 4,
    "per_seed": 20,
    "all": 7,
  }
  with pytest.raises(checks.ArgumentError, match=r"bad has shape \(3,\)"):
    Table.from_arrays({}, {"seed": [0, 1]}, {"bad": [1, 2, 3]})


def test_columns_must_be_equally_long():
  with pytest.raises(checks.ArgumentError, match="a has 1, b has 2"):
    Table({"a": [1], "b": [1, 2]})


def test_concat_marks_what_a_table_lacks():
  joined = Table.concat([Table({"a": [1], "t": ["x"]}), Table({}), Table({"a": [2], "b": [3]})])
  assert joined.names == ("a", "t", "b")
  assert joined["t"].tolist() == ["x", ""]
  np.testing.assert_array_equal(joined["b"], [math.nan, 3])


@given(tables(), tables())
def test_concat_keeps_all_rows(a, b):
  joined = Table.concat([a, b])
  assert len(joined) == len(a) + len(b)
  assert set(joined.names) == {*a.names, *b.names}


def test_where_selects_by_value_or_among_a_tuple():
  table = Table({"a": [1, 2, 3, 1], "t": ["x", "y", "x", "y"]})
  assert table.where(a=1)["t"].tolist() == ["x", "y"]
  assert table.where(a=(1, 3), t="x")["a"].tolist() == [1, 3]
  assert len(table.where(t="z")) == 0
  with pytest.raises(checks.ArgumentError, match=r"no column 'b'; use one of"):
    table.where(b=1)


def test_rows_are_kept_by_a_mask():
  table = Table({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]})
  kept = table.keep(table["a"] != 2)
  assert kept["b"].tolist() == ["x", "z"]
  assert kept.names == table.names


def test_missing_values_equal_each_other():
  table = Table({"epsilon": [1, math.nan, math.nan, 1], "v": [1, 2, 3, 4]})
  parts = {key: part["v"].tolist() for key, part in table.split("epsilon")}
  assert list(parts.values()) == [[1, 4], [2, 3]]
  assert len(table.unique("epsilon")) == 2
  assert table.where(epsilon=math.nan)["v"].tolist() == [2, 3]


@given(tables())
def test_split_deals_every_row_once(table):
  parts = [part for _, part in table.split(*table.names[:2])]
  assert sum(map(len, parts)) == len(table)
  for values, part in table.split(table.names[0]):
    assert len(part.unique(table.names[0])) == 1
    assert same(part, table.where(**{table.names[0]: values[0]}))


def test_split_of_nothing_is_nothing():
  assert list(Table({"a": []}).split("a")) == []


def test_pivot_orders_by_appearance_and_never_averages():
  table = Table({"m": ["b", "b", "a", "a"], "g": [2, 1, 1, 2], "v": [1, 2, 3, 4]})
  np.testing.assert_array_equal(table.pivot("m", "g", "v"), [[1, 2], [4, 3]])
  with pytest.raises(checks.ArgumentError, match="exactly once"):
    Table({"m": ["a", "a"], "g": [1, 1], "v": [1, 2]}).pivot("m", "g", "v")


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "'=1", "''-x", "＝1"]  # noqa: RUF001
PLAIN = ["<=25", "a=1", "'quoted'", "'", "", "it's", " =1"]


def test_no_text_is_a_formula_in_a_spreadsheet_and_all_come_back():
  table = Table({"group": FORMULAS + PLAIN, "=cost": range(len(FORMULAS + PLAIN))})
  written = table.to_csv()
  for cells in list(csv.reader(io.StringIO(written, newline="")))[1:]:
    assert not cells[0].startswith(tuple("=+-@\t\r\n＝"))  # noqa: RUF001
  assert written.startswith('"group","\'=cost"\n"\'=1+1",0\n')
  assert '"<=25",9\n' in written
  again = Table.from_csv(written)
  assert again["group"].tolist() == FORMULAS + PLAIN
  assert again.names == ("group", "=cost")


def test_negative_numbers_stay_numbers():
  assert Table({"a": [-1.0, -0.5, -math.inf]}).to_csv() == '"a"\n-1\n-0.5\n-inf\n'


@given(st.lists(st.text("'=+-@\t\r\nab0", max_size=5), min_size=1))
def test_any_text_comes_back(texts):
  again = Table.from_csv(Table({"a": [*texts, "x"]}).to_csv())
  assert again["a"].tolist() == [*texts, "x"]


@pytest.mark.parametrize(
  "damage",
  [
    b'"a","b"\n1,"x',
    b'"a","b"\n1\n',
    b'"a","b"\n1,2x\n',
    b'"a","a"\n1,2\n',
    b'"a",3\n1,2\n',
    b'"a","b"\n1,"x"\n1,2\n',
    b'"a","b"\n1,"x"y\n',
    b'"a"\n"\xff"\n',
    b'"a"\n"' + b"x" * 200_000 + b'"\n',
  ],
)
def test_a_damaged_file_is_one_line(tmp_path, damage):
  path = tmp_path / "results.csv"
  path.write_bytes(damage)
  with pytest.raises(RunError, match=r"results\.csv is damaged \(.*; delete it"):
    Table.read(path)


def test_rows_become_columns_and_gaps_missing_values():
  made = Table.from_rows([{"a": 1, "b": "x"}, {"a": 2}, {"c": 3.0}])
  assert made.names == ("a", "b", "c")
  assert made["b"].tolist() == ["x", "", ""]
  np.testing.assert_array_equal(made["a"], [1, 2, np.nan])
  assert len(Table.from_rows([])) == 0


def test_a_join_looks_up_by_key_and_leaves_the_rest_missing():
  rows = Table({"seed": [0, 1, 0, 1], "group": ["a", "a", "b", "b"]})
  other = Table({"seed": [1, 0], "group": ["a", "b"], "value": [5.0, 7.0], "name": ["p", "q"]})
  made = rows.join(other, ("seed", "group"), was="value", called="name")
  np.testing.assert_array_equal(made["was"], [np.nan, 5, 7, np.nan])
  assert made["called"].tolist() == ["", "p", "q", ""]
  with pytest.raises(checks.ArgumentError, match="once in the other table"):
    rows.join(other, (), was="value")


def test_a_new_column_is_repeated_or_filled_in_from_each_row():
  table = Table({"data": ["a", "{b}"], "epsilon": [1.0, 0.25]})
  found = table.plus(seed=3, panel="{data}, epsilon {epsilon:g}", epsilon=[2, 3])
  assert found["seed"].tolist() == [3.0, 3.0]
  assert found["panel"].tolist() == ["a, epsilon 1", "{b}, epsilon 0.25"]
  assert found["epsilon"].tolist() == [2.0, 3.0]
  assert len(table.keep(np.zeros(2, bool)).plus(panel="{data}", seed=0)) == 0
  with pytest.raises(checks.ArgumentError, match="no column 'dat'"):
    table.plus(panel="{dat}")
