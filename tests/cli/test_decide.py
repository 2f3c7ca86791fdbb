"""`jaxfair decide`: an agency's file in, who gains and loses out."""

import json

import pytest

from jaxfair import experiments, report

DISTRICTS = """name,children,weight
Ashford,12,1.0
Burwell,300,1.2
Corby,4000,1.0
Denholm,25,0.8
"""


@pytest.fixture
def districts(tmp_path):
  path = tmp_path / "districts.csv"
  path.write_text(DISTRICTS)
  return path


def call(jaxfair, *more, rule="title-one", epsilon="0.05", out="r"):
  return jaxfair(
    "decide",
    "--counts",
    "districts.csv",
    "--rule",
    rule,
    "--epsilon",
    epsilon,
    "--draws",
    "500",
    "--out",
    out,
    *more,
  )


@pytest.mark.slow
def test_who_gains_who_loses_and_what_helps(jaxfair, districts, tmp_path):
  ended = call(
    jaxfair, "--label", "name", "--budget", "1000000", "--remedy", "linear proxy, public total"
  )
  assert ended.code == 0, ended.err
  lines = ended.out.splitlines()
  assert "own eyes" in lines[0]
  places = [line for line in lines if line.startswith(("Ash", "Cor"))]
  # Clipping pays the smallest and takes from the largest.
  assert places[0].startswith("Corby")
  assert "-$" in places[0]
  assert "-$" not in places[-1]
  proxy = next(line for line in lines if line.startswith("linear proxy"))
  assert "0 within error" in proxy
  assert "output perturbation" not in ended.out
  page = (tmp_path / "r" / "report.html").read_text()
  assert "own eyes, not for release" in page
  assert "Who gains and who loses, by size" in page
  claims = json.loads((tmp_path / "r" / "claims.json").read_text())
  found = {claim["name"]: claim["verdict"] for claim in claims}
  assert found["small gain"] == "supported"
  assert found["small lose"] == "supported"
  assert found["proxy fair"] == "supported"
  assert found["outputs fair"] == found["epsilon"] == "not run"
  table = experiments.Table.read(tmp_path / "r" / "results.csv")
  gains = table.where(row="district", method="non-negative")["gain"]
  # Money is only moved: gains and losses cancel, to rounding.
  assert abs(gains.sum()) < 1e-6 * abs(gains).sum()


@pytest.mark.slow
def test_rights(jaxfair, tmp_path, monkeypatch):
  monkeypatch.setattr(report, "write", lambda run: run.folder / "report.html")
  near = ["1000,52,20", "1000,48,20", "1000,100,2", "800,41,0"]
  far = ["5000,900,300", "9000,9,9", "7000,1500,2", "90000,100,0"]
  header = "citizens,limited_english,little_schooling"
  (tmp_path / "districts.csv").write_text("\n".join([header, *near, *far]))
  ended = call(jaxfair, rule="minority-language", epsilon="1", out="r")
  assert ended.code == 0, ended.err
  assert "wrong decisions" in ended.out
  worst = [line.split()[1] for line in ended.out.splitlines()[4:8]]
  assert sorted(worst) == ["0", "1", "2", "3"]  # those next to a threshold
  table = experiments.Table.read(tmp_path / "r" / "results.csv")
  assert set(table.where(row="place")["truth"]) == {"FF", "FT", "TF", "TT"}
  claims = json.loads((tmp_path / "r" / "claims.json").read_text())
  found = {claim["name"]: claim["verdict"] for claim in claims}
  assert found["thresholds"] == "supported"


@pytest.mark.parametrize(
  ("more", "told"),
  [
    (["--epsilon", "0"], "epsilons=0.0 must be above 0"),
    (["--remedy", "prayer"], "methods='prayer' is not known"),
    (["--column", "pupils"], "'pupils' is not a column"),
    (["--column", "name"], "'name' holds words"),
    (["--budget", "0"], "budget=0.0"),
    (["--counts", "none.csv"], "none.csv cannot be read"),
    (["--rule", "minority-language", "--remedy", "tempered"], "--remedy is for --rule title-one"),
  ],
)
def test_refused(refused, districts, more, told):
  assert told in call(refused, *more)


@pytest.mark.parametrize(
  ("row", "told"),
  [
    ("Egham,,1.0", "counts are missing or infinite in Egham"),
    ("Egham,5,-1.0", "weights are negative or missing in Egham"),
    ("Egham,-5,1.0", "counts are negative in Egham"),
  ],
)
def test_rows_that_cannot_be_used_are_named(refused, districts, row, told):
  districts.write_text(f"{DISTRICTS}{row}\n")
  assert told in call(refused, "--label", "name")
