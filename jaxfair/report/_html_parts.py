"""The shared parts of every page."""

import html
from collections.abc import Iterable, Sequence

from jaxfair.experiments._folders import ClaimRecord
from jaxfair.report._style import SCRIPT, STYLE

VERDICTS = {"supported": "✓", "not supported": "✗", "undecided": "?", "not run": "-"}


def page(title: str, sections: Iterable[str]) -> str:
  """A whole page that loads nothing from elsewhere; pages with charts include a small script."""
  body = "\n".join(section for section in sections if section)
  script = f"<script>{SCRIPT}</script>" if "data-tip" in body else ""
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<link rel="icon" href="data:,">'
    f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>"
    f"<body><main>{body}</main>{script}</body></html>\n"
  )


def header(title: str, summary: str, badges: Iterable[str]) -> str:
  """The page's title, a sentence, and facts in small frames."""
  spans = "".join(f"<span>{html.escape(badge)}</span>" for badge in badges)
  return (
    f"<header><h1>{html.escape(title)}</h1><p>{html.escape(summary)}</p>"
    f'<p class="badges">{spans}</p></header>'
  )


def claims(found: Sequence[ClaimRecord]) -> str:
  """A table of claims with results and verdicts; empty without claims."""
  if not found:
    return ""
  lines = "".join(map(_claim, found))
  return (
    "<table class='claims'><thead><tr><th>claim</th>"
    "<th>found [95% interval]</th><th>verdict</th></tr></thead>"
    f"<tbody>{lines}</tbody></table>"
  )


def duration(seconds: float) -> str:
  """Seconds up to a minute and a half, then minutes."""
  return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _claim(claim: ClaimRecord) -> str:
  verdict = claim.verdict
  number = "-" if claim.value is None else f"{claim.value:.4g}"
  if claim.low is not None and claim.high is not None:
    number += f" <small>[{claim.low:.4g}, {claim.high:.4g}]</small>"
  why = claim.why or claim.statistic
  return (
    f"<tr><td>{html.escape(claim.statement)}<br><small>{html.escape(claim.origin)}</small></td>"
    f"<td>{number}<br><small>{html.escape(why)}</small></td>"
    f'<td class="{verdict.replace(" ", "-")}">{VERDICTS[verdict]} {verdict}'
    "</td></tr>"
  )
