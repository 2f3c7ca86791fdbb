"""What `[release]` tables and points of a frontier become, and what is refused."""

import pathlib
import types

import jax
import numpy as np
import pytest

from helpers import hiring
from jaxfair import _schema, checks
from jaxfair.experiments import _folders, _releases
from jaxfair.experiments._people import dataset_ledger
from jaxfair.experiments._release_config import ReleaseConfig

TEXT = '[release]\nepsilon = 1.0\nmethod = "pate"\nsettings = {queries = 20}\n'


def write(path: pathlib.Path, text: str) -> pathlib.Path:
  path.write_text(text, encoding="utf-8")
  return path


@pytest.mark.parametrize(
  ("text", "told"),
  [
    ("study = 'train'", "no \\[release\\] table"),
    ("seed = 1\n" + TEXT, "seed: a config of a release has"),
    ('[release]\nmethod = "pate"', "epsilon: missing"),
    ('[release]\nepsilon = 1.0\nmethod = "plain"', "method='plain'"),
    ('[release]\nepsilon = 1.0\nmethot = "pate"', "methot"),
    ("[release]\nepsilon = -1.0", "epsilon=-1"),
  ],
)
def test_a_strange_table_is_refused(tmp_path, text, told):
  with pytest.raises(checks.JaxfairError, match=told):
    _releases.read_release(write(tmp_path / "a.toml", text), {})


def test_what_is_given_replaces_what_is_written(tmp_path):
  given = {"settings": {"queries": 30}, "data": {"name": "adult", "group": "sex"}}
  config = _releases.read_release(write(tmp_path / "a.toml", TEXT), given)
  assert config.settings == {"queries": 30}
  assert (config.method, config.data.group) == ("pate", "sex")


def test_parts_are_shares_or_numbers():
  assert ReleaseConfig(epsilon=1.0, public=0.1, test=50).parts(1000) == (100, 850, 50)
  assert ReleaseConfig(epsilon=1.0).parts(1000) == (0, 800, 200)
  with pytest.raises(checks.ArgumentError, match="one or the other"):
    ReleaseConfig(epsilon=1.0, public=0.1, public_csv="a.csv")
  for public in (1000, 0.95, 1e-5):
    with pytest.raises(checks.ArgumentError, match="leave a part empty"):
      ReleaseConfig(epsilon=1.0, public=public, test=0.1).parts(1000)


def test_settings_that_a_method_does_not_have_are_refused():
  with pytest.raises(checks.ArgumentError, match=r"settings\.teachers"):
    ReleaseConfig(epsilon=1.0, settings={"teachers": 3})


def test_a_point_becomes_the_release_that_its_study_says(tmp_path, monkeypatch):
  def table(config, at):
    if at["method"] == "other":
      return None
    return {"method": at["method"], "epsilon": at["epsilon"], "data": {"name": config}}

  study = types.SimpleNamespace(name="mine", release=table)
  made = types.SimpleNamespace(study=study, settings="adult")
  found = types.SimpleNamespace(
    settings=[{"epsilon": 1.0}, {"epsilon": np.float64(2.0)}], methods=["dp_sgd", "other"]
  )
  monkeypatch.setattr(_releases, "read_plan", lambda folder: made)
  monkeypatch.setattr(_releases, "read_frontier", lambda folder, data: found)
  config = _releases.read_point(tmp_path, 0, {"delta": 1e-4})
  assert (config.method, config.epsilon, config.delta) == ("dp_sgd", 1.0, 1e-4)
  with pytest.raises(_folders.RunError, match="other has no release"):
    _releases.read_point(tmp_path, 1, {})
  with pytest.raises(checks.ArgumentError, match="point=2"):
    _releases.read_point(tmp_path, 2, {})
  study.release = None
  with pytest.raises(_folders.RunError, match="does not say how"):
    _releases.read_point(tmp_path, 0, {})


@pytest.mark.parametrize(
  ("more", "told"),
  [
    (
      {
        "method": "pate",
        "public": 0.3,
        "settings": {"num_teachers": 30, "queries": 40, "sanitized_epsilon": 40.0},
      },
      "scale by public people or by declared ranges",
    ),
    ({"method": "dp_sgd", "devices": 99}, "devices=99 of .* cannot share"),
  ],
)
def test_what_is_refused_is_refused_before_scaling_is_bought(tmp_path, more, told):
  hiring.write(tmp_path / "people.csv", size=600)
  people = {"csv": str(tmp_path / "people.csv"), "label": "hired", "group": "sex"}
  given = {"epsilon": 60.0, "delta": 1e-4, "scaling": "private", "data": people, **more}
  config = _schema.build(ReleaseConfig, given, where="")
  ledger = dataset_ledger(config.data)
  with pytest.raises(checks.ArgumentError, match=told):
    _releases.release_model(_releases.plan_release(config), tmp_path / "out")
  assert ledger.spent(1e-4) == []
  assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
  ("hosts", "devices", "told"),
  [
    (3, "all", r"3 hosts cannot share 64 shards of people equally; .* settings.dp_sgd.shards = 66"),
    (2, 3, "devices=3 of 4 cannot share 64 shards of people equally on 2 hosts; use 2, 4 or all"),
    (1, 3, "devices=3 of 2 cannot share 64 shards of people equally; use 1, 2 or all"),
  ],
)
def test_every_host_takes_as_many_shards(monkeypatch, hosts, devices, told):
  there = [types.SimpleNamespace(process_index=host) for host in range(hosts) for _ in range(2)]
  monkeypatch.setattr(jax, "process_count", lambda: hosts)
  monkeypatch.setattr(jax, "devices", lambda: there)
  plan = types.SimpleNamespace(settings=types.SimpleNamespace(shards=64))
  config = ReleaseConfig(epsilon=1.0, devices=devices)
  with pytest.raises(checks.ArgumentError, match=told):
    config.mesh(plan)
