"""Pages in headless Chromium: what it draws, and what it complains about."""

import os
import pathlib
import shutil
import subprocess
from typing import NamedTuple

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


class Drawn(NamedTuple):
  """A page after its scripts have run."""

  dom: str
  complaints: list[str]  # what it wrote to the console


def draw(page: pathlib.Path, *, size: tuple[int, int] = (1280, 900)) -> Drawn:
  """Opens a page in a new profile beside it, without a network.

  The browser is found on the path, or named by CHROMIUM. Without one the test
  is skipped, and says what it needs.
  """
  found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
  if found is None:
    pytest.skip("install chromium, or set CHROMIUM, to test pages in a browser")
  ended = subprocess.run(
    [
      found,
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--window-size={},{}".format(*size),
      "--enable-logging=stderr",
      "--virtual-time-budget=20000",
      f"--user-data-dir={page.parent / 'profile'}",
      "--dump-dom",
      page.as_uri(),
    ],
    capture_output=True,
    text=True,
    timeout=120,
    check=True,
  )
  complaints = [x for x in ended.stderr.splitlines() if "CONSOLE" in x]
  return Drawn(ended.stdout, complaints)
