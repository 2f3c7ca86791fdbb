"""Common mistakes with files and columns: one line that names the remedy.

A row: the file, what is asked of it, what the message must say, and what makes it work.
"""

import numpy as np
import pytest

from jaxfair import data
from jaxfair.checks import ArgumentError
from jaxfair.data import DataError

ROWS = 40
USUAL = {"label": "hired", "group": "sex"}


def columns(**changes):
  rng = np.random.default_rng(0)
  usual = {
    "age": rng.integers(18, 70, ROWS).tolist(),
    "pay": rng.normal(3000, 500, ROWS).round(2).tolist(),
    "sex": ["F", "M"] * (ROWS // 2),
    "hired": ["yes", "no", "no", "yes"] * (ROWS // 4),
  }
  return usual | changes


def text(separator=",", **changes):
  table = columns(**changes)
  lines = zip(*table.values(), strict=True)
  return "\n".join(separator.join(map(str, line)) for line in (table, *lines)) + "\n"


def with_cell(name, row, value):
  cells = columns()[name]
  cells[row] = value
  return {name: cells}


ONE_PERSON = ["X", *(["F", "M"] * ROWS)[1:ROWS]]
GRADES = (["low", "middle", "high", "low"] * ROWS)[:ROWS]
MISTAKES = {
  "typo in label": (text(), {"label": "hird"}, r"did you mean hired", {"label": "hired"}),
  "typo in group": (text(), {"group": "sexx"}, r"did you mean sex", {"group": "sex"}),
  "typo in drop": (text(), {"drop": ["agee"]}, r"did you mean age", {"drop": ["age"]}),
  "typo in ranges": (
    text(),
    {"ranges": {"aeg": (0, 99)}},
    r"ranges 'aeg' is not a column; .*did you mean age",
    {"ranges": {"age": (0, 99)}},
  ),
  "wrong separator": (
    text(";"),
    {"separator": ","},
    r"label 'hired' is not a column; use one of age;pay;sex;hired",
    {"separator": None},
  ),
  "label missing in rows": (
    text(**with_cell("hired", 7, "")),
    {},
    r"label 'hired' is missing in 1 rows \(the first is data row 8\); drop these rows",
    None,
  ),
  "label of three values": (
    text(hired=GRADES),
    {},
    r"has 3 values \(high, low, middle\); pass positive='high' .* or multiclass=True",
    {"positive": "high"},
  ),
  "label of one value": (text(hired=["no"] * ROWS), {}, "one class only .no.; there is", None),
  "label of many numbers": (text(), {"label": "pay"}, "pass threshold=", {"threshold": 3000}),
  "positive that nobody has": (
    text(),
    {"positive": "Yes"},
    r"positive='Yes' is not a value of label 'hired'; use one of no, yes",
    {"positive": "yes"},
  ),
  "label that is the group": (
    text(),
    {"group": "hired"},
    "label 'hired' is also the group.*choose another column",
    {"group": "sex"},
  ),
  "group of one person": (
    text(sex=ONE_PERSON),
    {},
    r"group 'X' of sex has 1 person.*merge it .* or pass min_group_size=1",
    {"min_group_size": 1},
  ),
  "group of many numbers": (
    text(),
    {"group": "age"},
    r"pass bins=\{'age': \[edges\]\}",
    {"bins": {"age": [40]}},
  ),
  "empty column": (
    text(note=["NA"] * ROWS),
    {},
    "column 'note' is empty; name it in drop=",
    {"drop": ["note"]},
  ),
  "empty columns at the end of every line": (
    text().replace("\n", ",,\n"),
    {},
    "column 'column_4', 'column_5' are empty; name each in drop=",
    {"drop": ["column_4", "column_5"]},
  ),
  "constant column": (
    text(country=["US"] * ROWS),
    {},
    "column 'country' has the same value in every row; name it in drop=",
    {"drop": ["country"]},
  ),
  "two columns of one name": (
    text().replace("pay", "age"),
    {},
    "two columns are called 'age'; rename one",
    None,
  ),
  "no rows": ("age,sex,hired\n", {}, "the table has no rows", None),
  "nothing at all": ("", {}, "the text is empty; a header line is needed", None),
  "a short row": (
    text().replace("\n", "\n1\n", 1),
    {},
    r"data row 1 has 1 cells where 4 are expected; check the separator",
    None,
  ),
  "thousands separators": (
    text(";", pay=[f"{1000 + i:,}.50" for i in range(ROWS)]),
    {},
    r"column 'pay' has numbers such as '1,000.50': with thousands separators.*write 1234.5",
    None,
  ),
  "commas that may be either": (
    text(";", pay=[f"{1000 + i:,}" for i in range(ROWS)]),
    {},
    "pass decimal=',' if the comma is the decimal sign",
    {"decimal": ","},
  ),
  "percent signs": (
    text(share=[f"{i}%" for i in range(ROWS)]),
    {},
    "column 'share' has numbers such as '0%': with the sign %; write the number alone",
    {"categorical": ["share"]},
  ),
  "amounts of money": (
    text(";", pay=[f"-€ {1000 + i:,}.50" for i in range(ROWS)]),
    {},
    "column 'pay' has numbers such as '-€ 1,000.50': with the sign €; write the number alone",
    {"categorical": ["pay"]},
  ),
  "words among numbers": (
    text(**with_cell("pay", 3, "unknown")),
    {},
    "column 'pay' has numbers, and text such as 'unknown'; leave these cells empty, or name it",
    {"missing": ["", "unknown"]},
  ),
  "dates of the day first": (
    text(since=[f"{i % 28 + 1}.{i % 12 + 1}.20{i:02}" for i in range(ROWS)]),
    {},
    "column 'since' holds dates such as '1.1.2000'; turn them into numbers, name it in drop=",
    {"drop": ["since"]},
  ),
  "dates with times": (
    text(since=[f"2024-02-03T10:{i:02}:00+01:00" for i in range(ROWS)]),
    {},
    "column 'since' holds dates such as '2024-02-03T10:00:00",
    {"categorical": ["since"]},
  ),
  "numbers of the rows": (
    text(id=range(7, 7 + ROWS)),
    {},
    "column 'id' numbers the rows from 7 to 46; name it in drop=, or declare its range",
    {"ranges": {"id": (0, 100)}},
  ),
  "a row index without a name": (
    text(index=range(ROWS)).replace("index", "", 1),
    {},
    "column 'column_4' numbers the rows from 0 to 39; name it in drop=",
    {"drop": ["column_4"]},
  ),
  "no header": (
    text().split("\n", 1)[1],
    {},
    "label 'hired' is not a column; .*; the first line must name the columns",
    None,
  ),
  "several groups of one person": (
    text(sex=["X", "Y", *(["F", "M"] * ROWS)[: ROWS - 2]]),
    {},
    r"group 'X' of sex has 1 person \(and 1 other groups have fewer than 2\)",
    {"min_group_size": 1},
  ),
  "words in a column with a range": (
    text(**with_cell("age", 3, "old")),
    {"ranges": {"age": (0, 99)}},
    r"ranges\['age'\] is given, but the column holds text such as 'old'; fix these cells",
    None,
  ),
  "a range upside down": (
    text(),
    {"ranges": {"age": (90, 17)}},
    r"ranges\['age'\]=\(90, 17\) must be increasing; pass \(low, high\)",
    {"ranges": {"age": (17, 90)}},
  ),
  "names as features": (
    text(name=[f"n{i}" for i in range(ROWS)]),
    {"max_words": 20},
    "column 'name' has 40 different values.*name it in drop=",
    {"drop": ["name"]},
  ),
  "a role that is dropped": (
    text(),
    {"drop": ["sex"]},
    "group 'sex' is also in drop; remove it from one of them",
    {"drop": []},
  ),
}


def test_a_file_of_another_format_is_refused_by_its_name(tmp_path):
  path = tmp_path / "people.json"
  path.write_text('[{"age": 1}]')
  with pytest.raises(ArgumentError, match=r"people.json: .json files cannot be read; save it as"):
    data.from_csv(path, **USUAL)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_common_mistake_is_told_with_its_remedy(tmp_path, monkeypatch, name):
  content, options, message, remedy = MISTAKES[name]
  options = dict(options)
  monkeypatch.setattr(data._column_checks, "MAX_WORDS", options.pop("max_words", 1000))
  path = tmp_path / "people.csv"
  path.write_text(content)
  with pytest.raises((ArgumentError, DataError), match=message) as caught:
    data.from_csv(path, **{**USUAL, **options})
  assert "\n" not in str(caught.value)
  assert str(caught.value).startswith(str(path))
  if remedy is not None:
    assert data.from_csv(path, **{**USUAL, **options, **remedy}).size == ROWS
