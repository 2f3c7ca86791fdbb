"""Sphinx settings of the documentation site: `make docs`."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests"), str(HERE)]
# Processes that run notebooks import this checkout, and share compiled programs.
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(HERE.parent / ".cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jaxfair

project = "jaxfair"
copyright = "the authors of jaxfair; Apache-2.0"
version = release = jaxfair.__version__
extensions = ["myst_nb", "_reference_pages", "_site"]
html_theme = "sphinx_book_theme"
html_title = "jaxfair"
html_theme_options = {"show_toc_level": 2, "use_download_button": False}
html_static_path = ["_static"]
html_css_files = ["site.css"]
exclude_patterns = ["_build", "*.py", "**/.ipynb_checkpoints", "evidence/text"]
suppress_warnings = ["config.cache"]

# Pages are Markdown that a Git host renders as well; headings have its anchors.
myst_heading_anchors = 4
myst_url_schemes = ["http", "https", "mailto"]

# The gallery: scripts in jupytext's percent format, executed once and kept in .cache.
nb_custom_formats = {".py": "_site.read_script"}
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / ".cache" / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

toc_object_entries = False  # headings name the same
