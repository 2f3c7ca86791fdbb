"""The script that freezes results: what it calls equal, and what it names."""

import numpy as np
import pytest
from frozen import freeze, functions


def write(folder, text):
  folder.mkdir(parents=True)
  (folder / "results.csv").write_text(text)
  return folder


def test_times_are_left_out_and_a_last_digit_is_named(tmp_path):
  before = write(tmp_path / "a", "seed,gap,seconds\n0,0.25,3\n1,0.5,4\n")
  slower = write(tmp_path / "b", "seed,gap,seconds\n0,0.25,9\n1,0.5,9\n")
  other = write(tmp_path / "c", "seed,gap,seconds\n0,0.25,3\n1,0.50000006,4\n")
  assert freeze.table_digest(before) == freeze.table_digest(slower)
  assert list(freeze.differing_cells(before, slower)) == []
  assert freeze.table_digest(before) != freeze.table_digest(other)
  (line,) = freeze.differing_cells(before, other)
  assert line == "gap: 1 of 2 rows, first row 2: 0.5 -> 0.50000006"


@pytest.mark.parametrize(
  ("text", "told"),
  [
    ("seed,gap\n0,0.25\n", "2 rows before, 1 now"),
    ("seed\n0\n1\n", "columns: without ['gap'], with []"),
    ("gap,seed\n0.25,0\n0.5,1\n", "in another order"),
  ],
)
def test_other_rows_and_columns_are_told(tmp_path, text, told):
  before = write(tmp_path / "a", "seed,gap\n0,0.25\n1,0.5\n")
  after = write(tmp_path / "b", text)
  assert any(told in line for line in freeze.differing_cells(before, after))


def test_arrays_that_differ_are_named(tmp_path):
  def save(name, **arrays):
    (tmp_path / name).mkdir()
    np.savez(tmp_path / name / "arrays.npz", **arrays)
    return tmp_path / name

  one, nan = np.ones(2, np.float32), np.array([np.nan])
  a = save("a", same=one, moved=one, wide=one, gone=one, nan=nan)
  b = save("b", same=one, moved=one * 2, wide=np.ones(2), new=one, nan=nan)
  assert list(freeze.differing_arrays(a, b)) == [
    "gone: gone",
    "moved: differs by up to 1",
    "new: new",
    "wide: float32(2,) -> float64(2,)",
  ]


def toy(root, value):
  """A checkout whose every run writes one number."""
  package = root / "jaxfair"
  package.mkdir(parents=True)
  (root / "configs").mkdir()
  for name in ("first", "second"):
    (root / "configs" / f"{name}.toml").write_text("")
  (package / "__init__.py").write_text("")
  (package / "__main__.py").write_text(
    "import pathlib, sys\n"
    "folder = pathlib.Path(sys.argv[sys.argv.index('--out') + 1])\n"
    "folder.mkdir(parents=True)\n"
    f"(folder / 'results.csv').write_text('value\\n{value}\\n')\n"
  )
  return root


def run(command, folder, root, *more):
  return freeze.main([command, str(folder), "--root", str(root), "--only", "configs/*", *more])


def test_records_and_compares_a_checkout(tmp_path, capsys):
  old, new = toy(tmp_path / "old", 1), toy(tmp_path / "new", 2)
  folder = tmp_path / "frozen"
  assert run("record", folder, old, "--budget", "-1") == 1  # nothing was begun
  assert "2 are left" in capsys.readouterr().out
  assert run("record", folder, old) == 0
  assert run("compare", folder, old) == 0
  assert "2 of 2 items are equal" in capsys.readouterr().out
  assert run("compare", folder, new) == 1
  told = capsys.readouterr().out
  assert "configs/first differs" in told
  assert "value: 1 of 1 rows, first row 1: 1 -> 2" in told
  with pytest.raises(SystemExit, match="other sources"):
    run("record", folder, new)


def test_every_case_is_an_item(tmp_path):
  names = freeze.item_names(tmp_path)
  assert names == [f"functions/{name}" for name in functions.CASES]


# The others train for seconds.
@pytest.mark.slow
@pytest.mark.parametrize(
  "name",
  ["accountants", "decision_rules", "frontiers", "noises", "output_perturbation", "pruning_masks"],
)
def test_a_function_gives_the_same_bytes_twice(name):
  first, second = functions.arrays(name), functions.arrays(name)
  assert first.keys() == second.keys()
  for place, array in first.items():
    assert array.tobytes() == second[place].tobytes(), place
