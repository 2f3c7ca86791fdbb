"""The package: its names, and what importing it costs."""

import subprocess
import sys

import pytest

from helpers import pages
from jaxfair import models


@pytest.mark.parametrize("name", models.__all__)
def test_every_public_name_is_there_and_documented(name):
  assert getattr(models, name).__doc__
  assert name in dir(models)


def test_an_unknown_name_is_an_attribute_error():
  with pytest.raises(AttributeError, match="resnot"):
    models.resnot  # noqa: B018


@pytest.mark.slow
def test_the_import_leaves_the_network_libraries_alone():
  code = (
    "import sys; from jaxfair import models; "
    "models.mlp(4, 2); models._coupling.check_loss(models.cross_entropy, 2); "
    "print([m for m in ('flax', 'haiku', 'equinox', 'optax', 'chex') if m in sys.modules])"
  )
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
  assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_the_programs_of_the_documentation_run():
  programs = pages.code_blocks(pages.read("docs/models.md"))
  assert len(programs) == 4
  for program in programs:
    exec(program, {})
