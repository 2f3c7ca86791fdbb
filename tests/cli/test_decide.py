"""`jaxfair decide`: an agency's file in, who gains and loses out."""

import csv
import re

import pytest

DISTRICTS = """name,land,children,weight
Ashford,North,12,1.0
Burwell,North,300,1.2
Corby,South,4000,1.0
Denholm,South,25,0.8
"""
RULES = """
def allot(children, weight):
  points = children.clip(0) * weight
  return points / max(points.sum(), 1.0)
def money(children):
  return 100 * children
def due(children):
  return children > 20
def broken(children):
  return 1 / (children - 12)
"""


@pytest.fixture
def districts(tmp_path):
  path = tmp_path / "districts.csv"
  path.write_text(DISTRICTS)
  (tmp_path / "grant.py").write_text(RULES)
  return path


def call(jaxfair, *more, rule="title-one", epsilon="0.05"):
  level = ["--epsilon", epsilon] if epsilon else []
  asked = ["--counts", "districts.csv", "--rule", rule, *level, "--draws", "500", "--out", "r"]
  return jaxfair("decide", *asked, *more)


def changes(tmp_path):
  with (tmp_path / "r" / "places.csv").open() as file:
    return {row["place"]: float(row["change_on_average"]) for row in csv.DictReader(file)}


@pytest.mark.slow
def test_who_gains_who_loses_and_what_helps(jaxfair, districts, tmp_path):
  ended = call(
    jaxfair, "--names", "name", "--region", "land", "--budget", "1000000", "--unit", "EUR"
  )
  assert ended.code == 0, ended.err
  lines = ended.out.splitlines()
  assert "own eyes" in lines[0]
  assert lines[1].startswith("1,000,000 EUR are shared among 4 places")
  # Clipping pays the smallest and takes from the largest; money is only moved.
  found = changes(tmp_path)
  assert found["Corby"] < 0 < found["Ashford"]
  assert abs(sum(found.values())) < 1e-6 * max(found.values())
  assert "Corby loses most" in lines[2]
  regions = {line.split()[0]: line for line in lines if line.startswith(("North ", "South "))}
  assert "-" in regions["South"]
  assert "+" in regions["North"]
  recommended = next(line for line in lines if line.startswith("recommended: "))
  assert recommended.endswith("--remedy public-total")
  page = (tmp_path / "r" / "report.html").read_text()
  assert "own eyes" in page
  assert recommended.removeprefix("recommended: ") in re.sub("</?span>", "", page)
  for word in ("alpha", "thesis", "bias"):
    assert word not in page.split("</style>")[1].lower()


@pytest.mark.slow
def test_ones_own_rule_does_as_the_rule_that_it_repeats(jaxfair, districts, tmp_path):
  own = ["--names", "name", "--budget", "1000000"]
  assert call(jaxfair, *own).code == 0
  usual = changes(tmp_path)
  ended = call(jaxfair, *own, "--public", "weight", rule="grant.py:allot")
  assert ended.code == 0, ended.err
  assert changes(tmp_path) == pytest.approx(usual, rel=1e-6, abs=1e-6)


@pytest.mark.slow
def test_epsilon_is_found_from_a_requirement(jaxfair, districts):
  wish = ["--at-most-loss", "1000", "--with-probability", "0.9"]
  ended = call(jaxfair, *wish, "--remedy", "noisy-shares", epsilon="")
  # The epsilon of one way says nothing about that of another.
  assert "--at-most-loss 1000 --with-probability 0.9 --remedy" in ended.out
  ended = call(jaxfair, *wish, "--remedy", "as-released", rule="grant.py:money", epsilon="")
  assert ended.code == 0, ended.err
  # 100 a child: four places lose at most 10 children each, at 0.296 exactly.
  found = float(ended.out.split("(epsilon ")[1].split(",")[0])
  assert 0.296 <= found <= 0.296 * 1.4
  assert "with 99% confidence" in ended.out


@pytest.mark.slow
def test_decisions(jaxfair, districts, tmp_path):
  ended = call(jaxfair, "--names", "name", "--region", "land", rule="grant.py:due", epsilon="0.3")
  assert ended.code == 0, ended.err
  assert "decides about 4 places, 3 of which qualify" in ended.out
  assert "the most uncertain is Denholm" in ended.out
  near = ["1000,52,20", "1000,48,20", "1000,100,2", "800,41,0"]
  far = ["5000,900,300", "9000,9,9", "7000,1500,2", "90000,100,0"]
  header = "citizens,limited_english,little_schooling"
  districts.write_text("\n".join([header, *near, *far]))
  ended = call(jaxfair, rule="minority-language", epsilon="1")
  assert ended.code == 0, ended.err
  found = changes(tmp_path)
  worst = sorted(found, key=lambda name: -abs(found[name]))[:4]
  assert sorted(worst) == ["row 1", "row 2", "row 3", "row 4"]  # those next to a threshold


@pytest.mark.parametrize(
  ("more", "told"),
  [
    (["--epsilon", "0"], "epsilon=0.0 must be above 0"),
    (["--at-most-loss", "5"], "pass --epsilon, or --at-most-loss together"),
    (["--remedy", "prayer"], "remedy='prayer' is not known"),
    (["--column", "pupils"], "'pupils' is not a column"),
    (["--rule", "minority-language"], "no column 'citizens', which minority-language reads"),
    (["--column", "name"], "'name' holds text"),
    (["--names", "town"], "names 'town' is not a column"),
    (["--region", "county"], "region 'county' is not a column"),
    (["--budget", "0"], "budget=0.0"),
    (["--draws", "5"], "draws=5"),
    (["--counts", "none.csv"], "none.csv cannot be read"),
    (["--rule", "title-two"], "pass title-one, minority-language, or FILE.py:FUNCTION"),
    (["--rule", "grant.py:broken"], "1 values that are not finite on the true counts"),
    (["--rule", "grant.py:due", "--budget", "5"], "budget is for amounts"),
    (["--rule", "grant.py:money", "--budget", "5"], "leave --budget out if it returns money"),
    (["--rule", "grant.py:due", "--public", "children"], "noise needs a private count"),
  ],
)
def test_refused(refused, districts, more, told):
  assert told in call(refused, *more)


@pytest.mark.parametrize(
  ("row", "told"),
  [
    ("Egham,North,,1.0", "counts are missing or infinite in Egham"),
    ("Egham,North,5,-1.0", "weights are negative or missing in Egham"),
    ("Egham,North,-5,1.0", "counts are negative in Egham"),
  ],
)
def test_rows_that_cannot_be_used_are_named(refused, districts, row, told):
  districts.write_text(f"{DISTRICTS}{row}\n")
  assert told in call(refused, "--names", "name")
