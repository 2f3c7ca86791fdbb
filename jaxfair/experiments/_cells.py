"""One cell of a run: a function of the plan, the cell's name and the root key alone.

Whatever process computes a cell, on this machine or another, the rows are the same bytes: keys
are derived from names, and everything else that the driver must know about the computation
(notes, digests of the data, versions) comes back with the rows.
"""

import ast
import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import pathlib
import platform
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

import jaxfair
from jaxfair import privacy
from jaxfair._whole_files import write_whole
from jaxfair.experiments import _folders
from jaxfair.experiments._data_digests import file_digests
from jaxfair.experiments._people import watched
from jaxfair.experiments._study import Cell, Context, Study, cell_name

PACKAGES = (
  "jaxfair",
  "jax",
  "jaxlib",
  "numpy",
  "scipy",
  "optax",
  "flax",
  "dm-haiku",
  "dp-accounting",
)


@dataclasses.dataclass(frozen=True)
class Plan:
  """A resolved config: everything that is needed to run it."""

  study: Study  # the study
  values: dict[str, Any]  # the resolved config file as plain values
  settings: Any  # the study's own config
  seed: int | Literal["os"]  # fixed seed, or "os" for one from the operating system
  title: str  # heading of the report
  size: str | None  # the size that was chosen, if the file has sizes

  @property
  def for_release(self) -> bool:
    """Whether the randomness comes from the operating system, as that of a release does."""
    return self.seed == "os"

  @property
  def mode(self) -> int:
    """Permissions of files with what was measured: on people of a release their owner's alone."""
    return 0o600 if self.for_release else 0o666


@dataclasses.dataclass(frozen=True)
class CellResult:
  """What one cell gave, as plain values that any process can send.

  Attributes:
    rows: the cell's table as CSV.
    notes: what a reader must be told about the rows.
    digests: name or path and digest of all data that the cell could read, files before and
      after; as private as the people.
    software: what computed it; see `software`.
  """

  rows: str
  notes: tuple[str, ...]
  digests: tuple[tuple[str, ...], ...]
  software: dict[str, str]


def compute_cell(
  made: Plan,
  cell: Cell,
  root: jax.Array,
  *,
  folder: pathlib.Path | None = None,
  say: Callable[[str], None] | None = None,
) -> CellResult:
  """Computes one cell.

  Args:
    made: the study and its settings.
    cell: which cell.
    root: the run's key; the cell's keys are derived from it and from the cell's name.
    folder: the run directory, if this process holds it.
    say: told each note at once, besides their being returned.
  """
  notes: list[str] = []

  def tell(message: str) -> None:
    notes.append(message)
    if say is not None:
      say(message)

  own = _named_key(root, cell_name(cell))
  # "/" is in no cell's name, so no cell has this key.
  shared = _named_key(root, "/shared by all cells")
  context = Context(own, shared, made.seed == "os", folder, tell)
  digests = [*file_digests(made.values).items()]
  with watched(lambda name, digest: digests.append((name, digest))):
    rows = made.study.run(made.settings, cell, context)
  digests += file_digests(made.values).items()  # one may have been edited meanwhile
  return CellResult(rows.to_csv(), tuple(notes), tuple(dict.fromkeys(digests)), software())


def versions(study: Study) -> dict[str, str]:
  """Versions of what computes a run, and on what."""
  devices = jax.devices()
  return software() | {
    "study code": study_digest(study.run),
    "system": f"{platform.system()} {platform.machine()}",
    "devices": f"{len(devices)} x {devices[0].device_kind}",
  }


def software() -> dict[str, str]:
  """Versions of the packages and of Python: cells of one run agree in them."""
  found = {}
  for name in PACKAGES:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
      found[name] = importlib.metadata.version(name)
  return found | {"python": platform.python_version()}


@functools.cache
def code_digest() -> str:
  """A digest of jaxfair's own source, which tells two checkouts of one version apart."""
  top = pathlib.Path(jaxfair.__file__).parent
  digest = hashlib.sha256()
  for path in sorted(top.rglob("*.py")):
    digest.update(f"{path.relative_to(top)}\0".encode() + path.read_bytes())
  return digest.hexdigest()


def study_digest(run: Callable[..., Any]) -> str:
  """A digest of the module of a study's `run` and of those of `jaxfair.studies` that it imports.

  It tells whether a table was computed by the study as it is now; the library below the studies
  has its version.
  """
  top = pathlib.Path(jaxfair.__file__).parent.parent
  while isinstance(run, functools.partial):
    run = run.func
  told = getattr(run, "__globals__", {}).get("__file__")
  waiting = [pathlib.Path(told)] if told else []
  found: dict[str, bytes] = {}
  while waiting:
    path = waiting.pop()
    name = str(path.relative_to(top)) if path.is_relative_to(top) else path.name
    if name not in found:
      found[name] = path.read_bytes()
      waiting += _imported_studies(found[name], top)
  digest = hashlib.sha256()
  for name, source in sorted(found.items()):
    digest.update(f"{name}\0".encode() + source)
  return digest.hexdigest()[:16]


def _imported_studies(source: bytes, top: pathlib.Path) -> list[pathlib.Path]:
  """The modules of `jaxfair.studies` that a source imports, be they named whole or in parts."""
  names = set()
  for node in ast.walk(ast.parse(source)):
    if isinstance(node, ast.ImportFrom) and node.module:
      names |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
  own = (name for name in names if name.startswith("jaxfair.studies."))
  paths = (top.joinpath(*name.split(".")) for name in own)
  files = (end for path in paths for end in (path.with_suffix(".py"), path / "__init__.py"))
  return [path for path in files if path.is_file()]


def root_key(made: Plan, folder: pathlib.Path) -> jax.Array:
  """The run's key: from the fixed seed, or from the operating system.

  A key from the operating system must survive a crash, or a resumed run could
  not finish the same computation; until then it lies in a file that only its
  owner may read, and that is deleted when the run is done.
  """
  if made.seed != "os":
    return jax.random.key(made.seed)
  path = folder / _folders.SECRET
  if not path.exists():
    fresh = np.asarray(jax.random.key_data(privacy.os_key()))
    write_whole(path, " ".join(str(word) for word in fresh), mode=0o600)
  try:
    words = np.array(path.read_text().split(), dtype=np.uint32)
    return jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")
  except (OSError, OverflowError, TypeError, ValueError):
    raise _folders.RunError(
      f"{path} holds no key, so what was started in {folder} cannot be "
      "continued; restore it from a copy, or choose another --out"
    ) from None


def _named_key(key: jax.Array, name: str) -> jax.Array:
  """A key for this name alone: 128 bits of its hash, 32 at a time."""
  digest = hashlib.sha256(name.encode()).digest()[:16]
  for word in np.frombuffer(digest, dtype="<u4"):
    key = jax.random.fold_in(key, word)
  return key
