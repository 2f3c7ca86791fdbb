"""Short HTML for notebooks, and columns as pandas frames."""

import html
from collections.abc import Iterable, Mapping
from typing import Any

from jaxfair import checks

ROWS = 10  # of a table that a notebook shows


def frame(columns: Mapping[str, Any], index: Any = None) -> Any:
  """The columns as a `pandas.DataFrame`."""
  try:
    import pandas
  except ModuleNotFoundError:
    raise checks.ArgumentError(
      "to_pandas() needs pandas; install it with `pip install 'jaxfair[files]'`"
    ) from None
  return pandas.DataFrame(dict(columns), index=index)


def table(columns: Mapping[str, Any], size: int) -> str:
  """The first rows of named columns; numbers with four digits."""
  head = "".join(f"<th>{html.escape(str(name))}</th>" for name in columns)
  body = "".join(
    "<tr>" + "".join(f"<td>{_cell(values[i])}</td>" for values in columns.values()) + "</tr>"
    for i in range(min(size, ROWS))
  )
  more = f"<p>{ROWS} of {size:,} rows</p>" if size > ROWS else ""
  return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def facts(title: str, told: Iterable[tuple[str, str]]) -> str:
  """A title in bold, and a list of named sentences."""
  items = "".join(
    f"<li><i>{html.escape(name)}</i>: {html.escape(text)}</li>" for name, text in told
  )
  return f"<div><b>{html.escape(title)}</b><ul>{items}</ul></div>"


def _cell(value: Any) -> str:
  if isinstance(value, str):
    return html.escape(value)
  return f"{float(value):.4g}"
