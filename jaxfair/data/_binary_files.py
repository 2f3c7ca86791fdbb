"""Reads a table of people from an Excel or Parquet file, through pandas."""

import pathlib
from collections.abc import Collection

from jaxfair.data import _tables
from jaxfair.data._files import DataError
from jaxfair.data._tables import Table

_PARQUET = (".parquet", ".pq")
BINARY = (".xlsx", ".xlsm", ".xls", *_PARQUET)


def read_binary(
  path: pathlib.Path, missing: Collection[str], text: Collection[str], skip: Collection[str]
) -> Table:
  """The table of an Excel or Parquet file.

  Args:
    path: the file.
    missing: cells that mean "missing".
    text: columns whose cells stay text although they look like numbers.
    skip: columns that are not read.
  """
  try:
    import pandas

    with path.open("rb") as file:
      if path.suffix.lower() in _PARQUET:
        frame = pandas.read_parquet(file)
      else:
        frame = pandas.read_excel(file, keep_default_na=False, na_values=list(missing))
  except ImportError:
    raise DataError(
      f"{path} needs pandas with openpyxl (for Excel) and pyarrow (for Parquet); pip install "
      "'jaxfair[files]', or save it as CSV"
    ) from None
  except OSError as error:
    raise DataError(f"{path} cannot be read ({error}); check the path") from None
  except Exception as error:  # each format has a dozen kinds of it
    told = str(error).splitlines()[0] if str(error) else type(error).__name__
    raise DataError(f"{path} is not an intact file of its kind ({told}); save it again") from None
  names = _tables.frame_names(frame)
  kept = [name for name in names if name not in skip]
  dates = {name for name in kept if frame[names[name]].dtype.kind == "M"}
  table = _tables.select(frame, [name for name in kept if name not in dates], text=text)
  # Dates stay what they are: a column of them may be dropped, and is refused if it is not.
  return {name: frame[names[name]] if name in dates else table[name] for name in kept}
