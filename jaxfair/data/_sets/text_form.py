"""Sets that are stored in delimited text files."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxfair.data import _tables
from jaxfair.data._files import Files, KnownFile
from jaxfair.data._reading import parse
from jaxfair.data._spec import Form, Raw
from jaxfair.data._tables import Table


def text_form(
  train: KnownFile,
  test: KnownFile | None = None,
  *,
  prepare: Callable[[Table], Table] = lambda table: table,
  **options: Any,
) -> Form:
  """One file, or a training and an official test file of the same columns."""

  def read(found: Files) -> Raw:
    def table(known: KnownFile) -> Table:
      text = found.text(known.name)
      return prepare(parse(text, **options))

    first = table(train)
    if test is None:
      return Raw(first)
    both = _tables.concatenate([first, table(test)])
    return Raw(both, test_rows=np.arange(_tables.size(both)) >= _tables.size(first))

  return Form((train,) if test is None else (train, test), read)
