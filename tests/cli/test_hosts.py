"""`jaxfair train --host`: the same command on several hosts, here processes of one machine."""

import os
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest

from helpers import hiring, quick_compile
from jaxfair import accounting, data, methods, training
from jaxfair.cli import _hosts
from jaxfair.experiments import _cells, _registry, _runs, _study
from jaxfair.methods import _buying
from jaxfair.training import _hosts as shared_hosts

USUAL = ("train", "people.csv", "--label", "hired", "--group", "sex", "--epsilon", "1")


@pytest.mark.parametrize(
  ("arguments", "told"),
  [
    (("--coordinator", "node1:5000"), "--coordinator needs --host: which host this is"),
    (("--host", "1/2"), "--coordinator is missing: name host 1 and a free port of it"),
    (("--host", "3/2", "--coordinator", "node1:5000"), "--host 3/2: name this host and how many"),
    (("--host", "1/1", "--coordinator", "node1:5000"), "--host 1/1: name this host and how many"),
    (("--host", "1/2", "--coordinator", "node1"), "--coordinator node1: name host 1 and a free"),
    (("--host", "auto"), "--host auto: no cluster was found in the environment (Slurm, Open MPI"),
    (("--host", "1/2", "--coordinator", "a:1", "--wait", "0"), "--wait 0: name a number of"),
    (
      ("--host", "2/2", "--coordinator", "localhost:1", "--wait", "0.2"),
      "no answer from localhost:1 within 0.2 seconds (Connection refused); start the same command",
    ),
    (
      ("--host", "1/2", "--coordinator", "localhost:%d", "--wait", "0.2"),
      "within 0.2 seconds; start the same command there, with --host 2/2",
    ),
  ],
)
def test_a_mistake_is_one_line_with_the_remedy(refused, tmp_path, arguments, told):
  hiring.write(tmp_path / "people.csv")
  line = refused(*USUAL, *(text.replace("%d", str(free_port())) for text in arguments))
  assert told in line


def free_port():
  with socket.socket() as free:
    free.bind(("localhost", 0))
    return free.getsockname()[1]


def test_a_cluster_says_who_this_host_is(monkeypatch):
  """Slurm's variables, read as `jax.distributed.initialize` reads them."""
  slurm = {"SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "node[3-4]", "SLURM_NTASKS": "2"}
  slurm |= {"SLURM_PROCID": "1", "SLURM_LOCALID": "0", "SLURM_STEP_NUM_NODES": "2"}
  for name, value in slurm.items():
    monkeypatch.setenv(name, value)
  index, count, address, _ = _hosts._place("auto", None, 1.0)
  assert (index, count) == (1, 2)
  assert address.startswith("node3:")
  assert _hosts._place("auto", "login:5000", 1.0)[2] == "login:5000"


def test_data_are_compared_by_what_they_hold(tmp_path):
  one, other = tmp_path / "one", tmp_path / "other"
  for path, text in ((one, "a;b"), (other, "a;c")):
    path.mkdir()
    (path / "x.csv").write_text(text)
  first = _hosts._digest(str(one / "x.csv"), b"secret")
  assert first == _hosts._digest(str(one), b"secret")
  assert first != _hosts._digest(str(other / "x.csv"), b"secret")
  assert first != _hosts._digest(str(one / "x.csv"), b"another")
  assert _hosts._digest("digits", b"secret") == _hosts._digest("digits", b"secret")


def on_hosts(folder, *arguments, count=2):
  """The same command on every host; how each of them ended."""
  flags = f"--xla_force_host_platform_device_count=1 {quick_compile.FLAGS}"
  own = {"XLA_FLAGS": flags, "JAXFAIR_STATE": str(folder / "state"), "NO_COLOR": "1"}
  command = [sys.executable, "-W", "error", "-m", "jaxfair", *arguments]
  command += ["--coordinator", f"localhost:{free_port()}", "--wait", "120"]
  started = [
    subprocess.Popen(
      [*command, "--host", f"{index + 1}/{count}"],
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
      cwd=folder,
      env=os.environ | own,
    )
    for index in range(count)
  ]
  try:
    return [(*one.communicate(timeout=300), one.returncode) for one in started]
  finally:
    for one in started:
      one.kill()
      one.communicate()


@pytest.mark.slow
def test_two_hosts_release_what_one_does(tmp_path):
  """One set of files, written and told by the first host; scales are bought once."""
  pandas = pytest.importorskip("pandas")
  pytest.importorskip("pyarrow")
  pandas.read_csv(hiring.write(tmp_path / "people.csv")).to_parquet(tmp_path / "people.parquet")
  few = ("--set", "settings.dp_sgd.steps=5", "--set", "settings.dp_sgd.batch_size=50")
  roles = ("--label", "hired", "--group", "sex", "--epsilon", "1")
  asked = ("train", "people.parquet", *roles, *few, "--on-disk")
  first, second = on_hosts(tmp_path, *asked, "--seed", "3", "--out", "out")
  assert first[2] == 0, first
  assert second == ("", "", 0)
  assert first[0].startswith("NOT FOR RELEASE")
  assert "[Gloo]" not in first[0]
  for told in ("released model", "without privacy", "predict:    jaxfair predict out/release"):
    assert told in first[0]
  assert not list(tmp_path.glob(".*"))
  (entry,) = accounting.Ledger.read(tmp_path / "out" / "work" / "ledger.jsonl")
  assert entry.event.shards == 64
  (entry,) = accounting.Ledger.read(tmp_path / "out" / "preprocessing" / "ledger.jsonl")
  # By hand, in one process: the same people in memory, drawn in as many shards.
  whole = data.from_csv(tmp_path / "people.csv", label="hired", group="sex")
  drawn = np.random.default_rng(np.asarray(jax.random.key_data(jax.random.key(0))))
  test_rows = drawn.choice(whole.size, whole.size // 5, replace=False, shuffle=False)
  own = whole.examples.take(np.delete(np.arange(whole.size), test_rows))
  buying = methods.plan_preprocessing(whole.encoder, epsilon=0.1, delta=5e-5)
  assert buying.event == entry.event
  bits = _buying.seeded_bits(jax.random.fold_in(jax.random.key(3), 1))
  made = buying.buy(own.x, source=bits)
  people = methods.Population(
    own._replace(x=made.apply(own.x)), whole.class_names, whole.group_names
  )
  method = methods.get("dp_sgd")
  settings = method.settings(steps=5, batch_size=50, shards=64)
  plan = method.plan(settings, people.sizes, accounting.Budget(0.9, 5e-5))
  private = plan.bounded(people).private
  fitted = training.dp_sgd(plan.model, plan.loss, private, plan.config, key=jax.random.key(3))
  released = methods.load(tmp_path / "out" / "release")
  np.testing.assert_array_equal(released.scaler.center, made.scaler.center)
  found = zip(*map(jax.tree.leaves, (fitted.params, released.params)), strict=True)
  for one, other in found:
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


class Told:
  """The first host's words, for the others."""

  is_first = True

  def __init__(self):
    self.words = []

  def tell(self, value):
    self.words.append(value)

  def hear(self):
    return self.words.pop(0) if self.words else None


def test_other_hosts_join_the_release_with_the_run_s_key(tmp_path, monkeypatch):
  """Of people in memory the first host compares methods alone; all of them train the release."""
  hiring.write(tmp_path / "people.csv")
  values = {"data": {"csv": str(tmp_path / "people.csv"), "label": "hired", "group": "sex"}}
  values |= {"methods": ["dp_sgd"], "epsilons": [1.0], "release_epsilon": 1.0, "seed": "os"}
  made, told, joined = _runs.plan(_registry.find("methods"), values), Told(), []
  monkeypatch.setattr(_cells, "compute_cell", lambda *given, **more: joined.append((given, more)))
  _hosts.follow(told, made, tmp_path)
  assert joined == []  # nothing is left to release
  seen = []
  step = _hosts.announced(told, made, tmp_path, lambda *given: seen.append(given))
  for done, cell in enumerate(made.study.cells(made.settings)):
    step(done, 4, _study.cell_name(cell))
  assert len(seen) == 4
  assert len(told.words) == 1
  _hosts.follow(told, made, tmp_path)
  (((_, cell, key), more),) = joined
  assert cell["method"] == "released model"
  assert more == {"folder": tmp_path}
  own = _cells.root_key(made, tmp_path)
  np.testing.assert_array_equal(jax.random.key_data(key), jax.random.key_data(own))


def test_hosts_with_other_configs_are_refused(tmp_path, monkeypatch):
  """A config may extend another, or name public people: a file that only one host has changed."""
  hiring.write(tmp_path / "people.csv")
  public = tmp_path / "public.csv"
  public.write_text("a")
  study, values = _registry.find("methods"), {"release_epsilon": 1.0, "public_csv": str(public)}
  values |= {"data": {"csv": str(tmp_path / "people.csv"), "label": "hired", "group": "sex"}}
  told = []
  monkeypatch.setattr(shared_hosts, "require_same", lambda *words: told.append(words[0]))
  for clip, text in ((1.0, "a"), (1000.0, "a"), (1.0, "b")):
    public.write_text(text)
    settings = {"settings": {"dp_sgd": {"l2_clip": clip}}}
    _hosts.require_same(_runs.plan(study, {"study": "methods", **values, **settings}))
  first, other, edited = told
  (line,) = {name for name in first if first[name] != other[name]}
  assert other[line] == "l2_clip = 1000.0"
  (line,) = {name for name in first if first[name] != edited[name]}
  assert first[line].startswith(f"{public} has the digest")
