"""Shared test set-up: quick compilation, CPU time per file, and where the real data lies."""

import collections
import gc
import math
import os
import pathlib

from helpers import quick_compile

# Set before JAX is imported; a caller's flags come last, and so win.
os.environ["XLA_FLAGS"] = f"{quick_compile.FLAGS} {os.environ.get('XLA_FLAGS', '')}"

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


# CPU seconds of a test file from which the summary at the end names it.
MUCH = 20.0

# CPU seconds when the present test began, and of each file so far.
_began = 0.0
_of_files: dict[str, float] = collections.defaultdict(float)


def _cpu_seconds() -> float:
  """Of this process and of those that it has waited for."""
  return sum(os.times()[:4])


def pytest_collection_finish():
  # What imports have made stays: the collector need not look at it again and again.
  gc.freeze()


def pytest_runtest_logstart():
  global _began
  _began = _cpu_seconds()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
  if call.when == "teardown":
    item.user_properties.append(("cpu_seconds", _cpu_seconds() - _began))


def pytest_runtest_logreport(report):
  if report.when == "teardown":
    _of_files[report.nodeid.split("::")[0]] += dict(report.user_properties)["cpu_seconds"]


def pytest_terminal_summary(terminalreporter):
  """Names the files that take much, so that growth is seen."""
  terminalreporter.section(f"CPU seconds of test files (over {MUCH:.0f}, and the sum)")
  for file, seconds in sorted(_of_files.items(), key=lambda pair: -pair[1]):
    if seconds > MUCH:
      terminalreporter.write_line(f"{seconds:7.1f} {file}")
  terminalreporter.write_line(f"{sum(_of_files.values()):7.1f} in {len(_of_files)} files")


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
