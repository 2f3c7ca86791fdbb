"""Shared test set-up: one compilation cache, and where the real data lies."""

import math
import os
import pathlib

# Most of a test's time is compilation, and most of that LLVM polishing a
# program that runs once. Set before JAX is imported; a caller's flags come
# last, and so win.
os.environ["XLA_FLAGS"] = (
  "--xla_backend_optimization_level=0 "
  "--xla_llvm_disable_expensive_passes=true " + os.environ.get("XLA_FLAGS", "")
)

import hypothesis
import jax
import pytest

CACHE = pathlib.Path(__file__).parent.parent / ".cache" / "jax"

jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)

# The first example of a property may compile a program; that is no failure.
# The same examples every time: what passes on one machine passes on another.
hypothesis.settings.register_profile("unhurried", deadline=None, derandomize=True)
hypothesis.settings.load_profile("unhurried")


# Bytes of one test process before it drops its compiled programs: a sixth of the machine.
MOST_MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 6


@pytest.fixture(scope="module", autouse=True)
def _drop_programs():
  """Compiled programs are kept for the next module, until all of them fill gigabytes."""
  yield
  if _resident() > MOST_MEMORY:
    jax.clear_caches()


def _resident() -> float:
  """Bytes of memory that this process holds; infinite where Linux does not tell."""
  try:
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
  except OSError:
    return math.inf
  return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="session", autouse=True)
def _own_state_folder(tmp_path_factory):
  """Releases of tests are not entered in the ledgers of whoever runs them."""
  before = os.environ.get("JAXFAIR_STATE")
  os.environ["JAXFAIR_STATE"] = str(tmp_path_factory.mktemp("state"))
  yield
  if before is None:
    del os.environ["JAXFAIR_STATE"]
  else:
    os.environ["JAXFAIR_STATE"] = before


@pytest.fixture(scope="session")
def data_root() -> pathlib.Path:
  """The folder with the real data sets; tests on them need it."""
  root = os.environ.get("JAXFAIR_DATA")
  if not root:
    pytest.skip("set JAXFAIR_DATA to a folder with the real data sets")
  return pathlib.Path(root)


@pytest.fixture
def toy():
  """The study that takes no time."""
  from helpers.toy_study import Toy

  return Toy()
