"""The same command on several hosts: who this one is, what must agree, and what the others do."""

import contextlib
import dataclasses
import hashlib
import hmac
import os
import pathlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jaxfair import checks

if TYPE_CHECKING:
  from jaxfair.experiments._cells import Plan
  from jaxfair.training._group import Group

Host = Annotated[
  str | None,
  typer.Option(
    metavar="I/N|auto",
    help="Train on N hosts: this one is number I; auto asks Slurm, Open MPI or another cluster.",
  ),
]
Coordinator = Annotated[
  str | None, typer.Option(metavar="HOST:PORT", help="Host 1 and a free port of it, for --host.")
]
Wait = Annotated[float, typer.Option(help="Seconds that hosts wait for each other to start.")]

OWN = ("host", "wait")  # what may differ between hosts
SEEN = 3.0  # seconds until a new file on a shared disk is seen by all hosts


@contextlib.contextmanager
def joined(
  context: typer.Context,
  host: str | None,
  coordinator: str | None,
  wait: float,
  files: Sequence[str],
) -> "Iterator[Group | None]":
  """Meets the other hosts of a command; None for a command of one host.

  Args:
    context: of the command, for its arguments.
    host: I/N, or "auto".
    coordinator: HOST:PORT of host 1.
    wait: seconds.
    files: files, folders and names of data sets that must hold the same on all hosts.
  """
  if host is None:
    checks.require(coordinator is None, "--coordinator needs --host: which host this is, as 1/2")
    yield None
    return
  checks.require(wait > 0, f"--wait {wait:g}: name a number of seconds above 0")
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # of what the runtime says, errors alone
  arguments = _arguments(context)
  from jaxfair.training import _group, _meeting

  index, count, address, devices = _place(host, coordinator, wait)
  place = _meeting.Place(index, count, address, wait)
  _ = place.host_and_port  # which may be wrong

  def describe(secret: bytes) -> dict[str, dict[str, str]]:
    named = {one: _digest(one, secret) for one in files}
    return {"versions": _versions(), "arguments": arguments, "data": named}

  with _group.together(place, describe, devices) as group:
    yield group


def _place(
  host: str, coordinator: str | None, wait: float
) -> tuple[int, int, str, Sequence[int] | None]:
  """Number, number of all, address, and the accelerators of this process."""
  if host == "auto":
    from jax._src import clusters  # how `jax.distributed.initialize()` finds out

    address, count, index, devices = clusters.ClusterEnv.auto_detect_unset_distributed_params(
      coordinator, None, None, None, None, int(wait)
    )
    checks.require(
      None not in (address, count, index),
      "--host auto: no cluster was found in the environment (Slurm, Open MPI, ...); number the "
      "hosts yourself: --host 1/2 --coordinator HOST:PORT",
    )
    assert address is not None
    assert count is not None
    assert index is not None
    return index, count, address, devices
  first, _, second = host.partition("/")
  right = first.isdecimal() and second.isdecimal() and 1 <= int(first) <= int(second)
  checks.require(
    right and int(second) > 1,
    f"--host {host}: name this host and how many there are, such as 1/2 and 2/2, or auto",
  )
  checks.require(
    coordinator is not None,
    "--coordinator is missing: name host 1 and a free port of it, such as node1:5000",
  )
  assert coordinator is not None
  return int(first) - 1, int(second), coordinator, None


def _arguments(context: typer.Context) -> dict[str, str]:
  """The options and arguments of this command, as they are written."""
  found = {}
  for option in context.command.params:
    if option.name in context.params and option.name not in OWN:
      found[option.opts[0]] = str(context.params[option.name])
  return found


def _versions() -> dict[str, str]:
  from jaxfair.experiments._cells import code_digest, software

  return {**software(), "the code of jaxfair": code_digest()[:12]}


def _digest(source: str, secret: bytes) -> str:
  """Of a file, of the files of a folder, or of a named data set."""
  path = pathlib.Path(source)
  keyed = hmac.new(secret, digestmod=hashlib.sha256)
  if not path.exists():
    from jaxfair.experiments._people import People, _load

    keyed.update(_load(People(name=source), 0).digest.encode())
    return keyed.hexdigest()
  for one in sorted(path.iterdir()) if path.is_dir() else [path]:
    with open(one, "rb") as file:
      keyed.update(hashlib.file_digest(file, "sha256").digest())
  return keyed.hexdigest()


def require_same(made: "Plan") -> None:
  """Raises on a host whose settings are others, such as those of a config that it extends."""
  from jaxfair.experiments import _config as configs
  from jaxfair.training import _hosts

  lines = configs.dump(made.values).splitlines()
  public = made.values.get("public_csv")
  if public is not None:
    content = pathlib.Path(public).read_bytes()
    lines.append(f"{public} has the digest {hashlib.sha256(content).hexdigest()[:12]}")
  told = {f"line {number} of the settings": line for number, line in enumerate(lines, start=1)}
  _hosts.require_same(told, "give all hosts the same configs, also those that they extend")


def require_shared(group: "Group | None", folder: pathlib.Path) -> None:
  """Raises on a host that does not see the run directory's place on a disk of all hosts."""
  if group is None:
    return
  from jax.experimental import multihost_utils

  from jaxfair.training import _hosts

  group.continues(folder)
  mark = folder.parent / f".{folder.name}.hosts"

  def marked() -> str:
    folder.parent.mkdir(parents=True, exist_ok=True)
    group.mark = mark
    mark.write_text(os.urandom(8).hex())
    return mark.read_text()

  token = _hosts.from_first(marked)
  end = time.monotonic() + SEEN
  while not (seen := _holds(mark, token)) and time.monotonic() < end:
    time.sleep(0.1)
  checks.require(
    seen, f"{folder.parent.absolute()} is not on a disk that all hosts share; choose another --out"
  )
  multihost_utils.sync_global_devices("jaxfair: shared folder")
  if group.is_first:
    mark.unlink()


def _holds(path: pathlib.Path, text: str) -> bool:
  try:
    return path.read_text() == text
  except OSError:
    return False


def announced(
  group: "Group | None",
  made: "Plan",
  folder: pathlib.Path,
  advance: Callable[[int, int, str], None],
) -> Callable[[int, int, str], None]:
  """Progress that calls the other hosts when the cell comes that all of them compute."""
  if group is None:
    return advance
  from jaxfair.experiments._cells import root_key

  def step(done: int, total: int, name: str) -> None:
    advance(done, total, name)
    if name == _shared(made)[0]:
      import jax
      import numpy as np

      group.tell(np.asarray(jax.random.key_data(root_key(made, folder))).tolist())

  return step


def follow(group: "Group", made: "Plan", folder: pathlib.Path) -> None:
  """What all hosts but the first do: they wait for the release, and share its training."""
  words = group.hear()
  if words is None:
    return  # it was released before
  import jax
  import jax.numpy as jnp

  from jaxfair.experiments._cells import compute_cell

  root = jax.random.wrap_key_data(jnp.asarray(words, jnp.uint32), impl="threefry2x32")
  compute_cell(made, _shared(made)[1], root, folder=folder)


def _shared(made: "Plan") -> tuple[str, Any]:
  """The name of the cell that releases a model, and the cell."""
  from jaxfair.experiments._study import cell_name
  from jaxfair.studies.method_settings import RELEASED

  (cell,) = (cell for cell in made.study.cells(made.settings) if cell["method"] == RELEASED)
  return cell_name(cell), cell


def require_devices(group: "Group | None", made: "Plan") -> None:
  """Raises before any work if the devices of all hosts cannot share the people."""
  if group is None:
    return
  import jax

  from jaxfair.experiments import _releases

  own: Any = made.settings
  config = own.priced(own.released_method, own.release_epsilon, ledger=False)
  config = dataclasses.replace(config, devices=own.devices)
  config.mesh(_releases.plan_release(config, key=jax.random.key(0)).plan)
