"""Tables that benchmarks write into pages of the documentation."""

import pathlib


def write_table(page: pathlib.Path, name: str, lines: list[str]) -> None:
  """Replaces what stands between `<!-- name -->` and `<!-- end of name -->`."""
  start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
  before, rest = page.read_text(encoding="utf-8").split(start)
  _, after = rest.split(end)
  page.write_text("\n".join([before + start + lines[0], *lines[1:], end + after]), encoding="utf-8")


def lines_of(page: pathlib.Path, name: str, title: str) -> list[str]:
  """The lines of a page's table whose first cell is this one."""
  rest = page.read_text(encoding="utf-8").split(f"<!-- {name} -->\n")[1]
  table = rest.split(f"<!-- end of {name} -->")[0]
  return [line for line in table.splitlines() if line.startswith(f"| {title} | ")]
