"""One page on which to choose a setting; it works offline, by mouse, touch and keyboard."""

import html
import json
import math
import pathlib
import shlex
from importlib import resources
from typing import Any

from jaxfair.experiments._frontiers import RunFrontier
from jaxfair.frontier import _objectives
from jaxfair.report import _series

TITLES = {
  "epsilon": "epsilon (privacy budget)",
  "gap": "gap (share of people)",
  "accuracy": "accuracy (share of people)",
  "coverage": "coverage (share of people)",
}
SCRIPTS = ("core.js", "charts.js", "space.js", "main.js")


def write_frontier(found: RunFrontier, path: pathlib.Path, *, notes: tuple[str, ...] = ()) -> None:
  """Writes the page of a run's frontier."""
  # "</script>" within a name must not end the script.
  data = json.dumps(_data(found)).replace("<", "\\u003c")
  listed = [*found.notes, *notes, *_caveats(found)]
  parts = {
    "title": html.escape(found.title),
    "badges": "".join(f"<span>{html.escape(b)}</span>" for b in _badges(found)),
    "reach": _reach(found),
    "alarm": _alarm(found),
    "notes": "".join(f"<li>{html.escape(note)}</li>" for note in listed),
    "style": _file("style.css"),
    "script": "\n".join(map(_file, SCRIPTS)),
    "data": data,
  }
  page = _file("page.html")
  for name, text in parts.items():
    page = page.replace("{{" + name + "}}", text)
  path.write_text(page, encoding="utf-8")


def _data(found: RunFrontier) -> dict[str, Any]:
  points = found.points
  low, high = _objectives.bounds(points)
  methods = list(dict.fromkeys(found.methods))
  return {
    "objectives": [
      {
        "name": o.name,
        "better": o.better,
        "words": _series.words(o.name),
        "title": TITLES.get(o.name, o.name),
        **{name: at for name, at in (("least", o.least), ("most", o.most)) if math.isfinite(at)},
      }
      for o in points.objectives
    ],
    "seeds": points.values.shape[1],
    "majority": None if math.isnan(found.majority) else found.majority,
    "methods": methods,
    "keys": [_series.words(key) for key in found.keys],
    "run": shlex.join(["jaxfair", "run", str(found.config)]),
    "release": found.releases,
    "out": "runs/chosen",
    "points": [
      {
        "m": methods.index(found.methods[i]),
        "s": [_label(found.settings[i][key]) for key in found.keys],
        "v": _numbers(points.means[i]),
        "lo": _numbers(low[i]),
        "hi": _numbers(high[i]),
        "p": float(found.attained.probability[i]),
        "on": bool(found.attained.on[i]),
        "why": found.useless[i],
        "sets": [shlex.quote(one) for one in found.sets[i]],
      }
      for i in range(len(points.values))
    ],
  }


def _badges(found: RunFrontier) -> list[str]:
  count, seeds, _ = found.points.values.shape
  fixed = f"fixed seed {found.seed}: reproducible, not for release"
  return [
    f"study: {found.study}",
    f"{_many(count, 'setting')}, {_many(seeds, 'seed')}",
    f"{int(found.attained.on.sum())} Pareto-optimal",
    *_baseline(found),
    "seed from the operating system; this page is not for release" if found.seed == "os" else fixed,
  ]


def _baseline(found: RunFrontier) -> list[str]:
  if math.isnan(found.majority):
    return []
  return [f"majority class alone: accuracy {found.majority:.3f}, gap 0, epsilon 0"]


def _alarm(found: RunFrontier) -> str:
  """A warning, in red, about settings on the frontier that are no better than a constant."""
  on = [i for i, why in enumerate(found.useless) if why and found.attained.on[i]]
  if not on:
    return ""
  return (
    f'<p class="useless" role="alert">{_many(len(on), "Pareto-optimal setting")} of '
    f"{int(found.attained.on.sum())} are no better than a constant. Their small gaps are not "
    "fairness; they are marked in red.</p>\n"
  )


def _reach(found: RunFrontier) -> str:
  """A table of the volume that each method dominates by itself; empty for one method."""
  if not found.reach:
    return ""
  lines = []
  for name, share in found.reach.items():
    on = sum(
      bool(own)
      for own, method in zip(found.attained.on, found.methods, strict=True)
      if method == name
    )
    volume = share.volume
    lines.append(
      f"<tr><td>{html.escape(name)}</td><td>{share.settings}</td><td>{on}</td>"
      f"<td>{float(volume.estimate):.3f} <small>[{float(volume.low):.3f}, "
      f"{float(volume.high):.3f}]</small></td></tr>"
    )
  return (
    '<section class="card"><h2>Comparison of methods</h2><div class="wide">'
    "<table><thead><tr><th>method</th><th>settings</th>"
    "<th>Pareto-optimal</th><th>volume by itself</th></tr></thead><tbody>"
    f'{"".join(lines)}</tbody></table></div><p class="caption">The volume '
    "that a method's own settings dominate in all four objectives, as a share of that of all "
    "settings; 95% interval over seeds. A method with more settings dominates more by chance "
    "alone.</p></section>\n"
  )


def _caveats(found: RunFrontier) -> list[str]:
  seeds, dropped = found.points.values.shape[1], found.points.dropped
  told = [
    "Accuracy, gap and coverage are measured without noise: at any epsilon, this page is only "
    "for those who hold the data.",
    "The best setting was selected on these seeds, so its numbers are optimistic. Train it "
    "again on fresh seeds (another seed in the config) before you report its numbers.",
    "Epsilon does not cover choosing a setting by results on private people. Choose on public "
    "people, or on another data set of the same kind.",
  ]
  if dropped:
    told.append(
      f"{dropped} settings are left out: in some seed one of the four numbers "
      "is missing, since nothing was learned or a group got no answer."
    )
  if seeds == 1:
    told.append("With one seed there are no intervals and no probabilities.")
  return told


def _many(count: int, what: str) -> str:
  return f"{count} {what}" + ("" if count == 1 else "s")


def _file(name: str) -> str:
  here = resources.files("jaxfair.report._frontier_page")
  return here.joinpath(name).read_text(encoding="utf-8")


def _numbers(values: Any) -> list[float | None]:
  """JSON has neither NaN nor infinities."""
  return [float(v) if math.isfinite(v) else None for v in values]


def _label(value: object) -> str:
  return "" if value is None else _series.label(value)
