"""Lines of the table of docs/accuracy.md, from what was measured."""

from typing import Protocol

import numpy as np

HEAD = (
  "| set | epsilon, delta | ours | published | goal | without noise | majority | seeds "
  "| CPU s | source, differences, where settings were chosen |",
  "|---|---|---|---|---|---|---|---|---|---|",
)


class Row(Protocol):
  """What a line says beside the numbers; see `accuracy.Row`."""

  title: str
  epsilons: tuple[float, ...]
  delta: float
  published: tuple[float | str, ...]
  bars: tuple[float, ...]
  source: str
  differences: str
  chosen: str


def lines(row: Row, found: dict) -> list[str]:
  """The row's lines of the table, one for each epsilon."""

  def values(what: float | str) -> np.ndarray:
    own = [found[key] for key in sorted(found) if key.rsplit(" ", 1)[0] == str(what)]
    return np.array([one if isinstance(one, list) else [one, 0] for one in own])

  def beside(found: np.ndarray) -> str:
    if found.shape[1] < 4:
      return ""
    return f" (coverage {found[:, 2].mean():.2f}, gap {found[:, 3].mean():.3f})"

  told = []
  for at, epsilon in enumerate(row.epsilons):
    ours = values(epsilon)
    if not len(ours):
      continue
    spread = f" ± {ours[:, 0].std(ddof=1):.2f}" if len(ours) > 1 else ""
    plain, most = (
      f"{values(what)[:, 0].mean():.2f}" if len(values(what)) else "not run"
      for what in ("plain", "majority")
    )
    shown = f"**{ours[:, 0].mean():.2f}**{spread}{beside(ours)}"
    told.append(
      f"| {row.title} | {epsilon:g}, {row.delta:g} | {shown} "
      f"| {row.published[at]} | {row.bars[at]:g} | {plain} | {most} | {len(ours)} "
      f"| {ours[:, 1].mean():.2g} | {row.source}. {row.differences}. Settings: {row.chosen}. |"
    )
  return told
