"""The package imports lightly."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_heavy_packages_are_not_imported():
  code = (
    "import sys, jax; before = set(sys.modules)\n"
    "import jaxfair.data\n"
    "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
    "print(sorted(new & {'scipy', 'pandas', 'matplotlib', 'PIL', 'xlrd'}))"
  )
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
  assert done.stdout.strip() == "[]"
