"""The page's style sheet and script."""

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --quiet: #57606a; --line: #d8dee4;
  --ground: #fff; --soft: #f6f8fa; --good: #00694b; --bad: #b3261e; --warm: #fff8e8;
  --alarm: #fdecea; --s0: #0072b2; --s1: #d55e00; --s2: #009e73; --s3: #cc79a7; --s4: #b87f00;
  --s5: #3a9bd0; --s6: #000; --s7: #8a7f00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --quiet: #a3acb8; --line: #3a424c;
  --ground: #14181d; --soft: #1f252c; --good: #4fd1a5; --bad: #ff8a80; --warm: #2b2412;
  --alarm: #3a1a18; --s0: #4aa8e0; --s1: #ff8a3d; --s2: #2ec79a; --s3: #e29cc4; --s4: #e6b03c;
  --s5: #8fcdf0; --s6: #fff; --s7: #cfc34a; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--ground);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.25rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.1rem 0 .25rem; }
header p { margin: .25rem 0; color: var(--quiet); }
.badges span { display: inline-block; margin: .25rem .4rem .25rem 0; padding: .1rem .6rem;
  border: 1px solid var(--line); border-radius: 1rem; font-size: .85rem; }
.answer { border-left: 4px solid var(--s0); padding: .2rem 1rem; margin-top: 1.25rem;
  background: var(--soft); font-size: 1.08rem; }
.answer p { margin: .5rem 0; }
.notes { border-left: 4px solid #e69f00; padding: .1rem 1rem; margin-top: 1.5rem;
  background: var(--warm); }
.alarm { border: 2px solid var(--bad); padding: .1rem 1rem; margin-top: 1.25rem;
  background: var(--alarm); }
.alarm h2 { color: var(--bad); }
.notes h2, .alarm h2 { margin-top: .5rem; }
.useless { color: var(--bad) !important; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .9rem .35rem 0;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
thead th { color: var(--quiet); font-weight: 600; vertical-align: bottom; max-width: 9rem; }
tbody th { font-weight: 600; }
small { color: var(--quiet); white-space: nowrap; }
td small { display: block; }
.claims small { white-space: normal; }
.caption { color: var(--quiet); font-size: .9rem; margin-top: .25rem; }
.supported { color: var(--good); font-weight: 600; white-space: nowrap; }
.undecided { font-weight: 600; white-space: nowrap; }
.not-supported { color: var(--bad); font-weight: 600; white-space: nowrap; }
.not-run { color: var(--quiet); white-space: nowrap; }
pre { background: var(--soft); padding: .75rem 1rem; overflow-x: auto; }
code { overflow-wrap: anywhere; }
a { color: var(--s0); }
details { margin: .5rem 0; }
dt { font-weight: 600; } dd { margin: 0 0 .4rem; color: var(--quiet); }
.panels { display: grid; gap: .5rem 1.25rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); }
.chart figure { margin: 0; max-width: 36rem; }
.chart figcaption { font-weight: 600; font-size: .93rem; }
.chart svg { display: block; width: 100%; height: auto; overflow: visible; }
.chart text { font: 11px system-ui, sans-serif; fill: var(--quiet); }
.chart .title, .chart .name { fill: var(--ink); font-weight: 600; }
.chart .value { fill: var(--ink); }
.grid { stroke: var(--line); fill: none; }
.reference { stroke: var(--quiet); stroke-dasharray: 2 3; fill: none; }
.whisker { stroke: var(--ink); stroke-width: 1.5; fill: none; }
polyline { fill: none; stroke: currentColor; stroke-width: 2; }
.band { fill: currentColor; opacity: .18; }
[data-series], .legend svg { fill: currentColor; }
[data-tip]:hover { filter: brightness(1.15); cursor: default; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem .5rem; margin: .2rem 0;
  font-size: .87rem; align-items: center; }
.legend > span { color: var(--quiet); }
.legend button { font: inherit; color: inherit; background: none; border: 0; padding: .1rem .35rem;
  border-radius: .3rem; cursor: pointer; display: inline-flex; gap: .35rem; align-items: center; }
.legend button:focus-visible { outline: 2px solid var(--s0); }
.legend svg { width: 12px; height: 12px; }
.legend button[aria-pressed=false] { opacity: .4; text-decoration: line-through; }
.hidden { display: none; }
#tip { position: fixed; z-index: 2; pointer-events: none; background: var(--ink);
  color: var(--ground); border-radius: .3rem; padding: .15rem .5rem; font-size: .85rem;
  max-width: 20rem; }
@media (max-width: 40rem) {
  main { padding: 1.25rem 1rem 3rem; }
  .stacked, .stacked tbody, .stacked tr, .stacked th, .stacked td, .claims, .claims tbody,
  .claims tr, .claims td { display: block; }
  .stacked thead, .claims thead { display: none; }
  .stacked tr, .claims tr { border-bottom: 1px solid var(--line); padding: .4rem 0; }
  .stacked th, .stacked td, .claims td { border: 0; padding: .1rem 0; }
  .stacked td { display: flex; gap: .6rem; justify-content: flex-end; text-align: right; }
  .stacked th { display: inline-block; margin-right: .6rem; }
  .stacked th::before { content: attr(data-head); font-weight: 400; color: var(--quiet); }
  .stacked td::before { content: attr(data-head); color: var(--quiet); text-align: left;
    margin-right: auto; }
  .stacked td small { min-width: 7.2em; white-space: normal; } }
@media print { :root { color-scheme: light; --ink: #000; --quiet: #444; --line: #bbb;
  --ground: #fff; --soft: #fff; --warm: #fff; --alarm: #fff; --s6: #000; }
  main { max-width: none; padding: 0; } figure, tr, .alarm, .answer { break-inside: avoid; }
  h2, h3 { break-after: avoid; } details { display: none; }
  .panels { grid-template-columns: 1fr 1fr; } .wide { overflow: visible; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
STYLE += "".join(f".s{order} {{ color: var(--s{order}); }}\n" for order in range(8))

# Numbers of a mark under the pointer or finger; a click on a name hides its series.
SCRIPT = """
"use strict";
const tip = document.body.appendChild(document.createElement("div"));
tip.id = "tip"; tip.hidden = true;
const show = event => {
  const mark = event.target.closest?.("[data-tip]");
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.dataset.tip;
  const wide = document.documentElement.clientWidth;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, wide - tip.offsetWidth - 4))}px`;
  tip.style.top = `${Math.max(4, event.clientY - 36)}px`;
};
document.addEventListener("pointerover", show);
document.addEventListener("click", event => {
  show(event);
  const button = event.target.closest?.(".legend button");
  if (!button) return;
  const off = button.getAttribute("aria-pressed") === "true";
  button.setAttribute("aria-pressed", String(!off));
  const own = `g[data-series="${button.dataset.series}"]`;
  button.closest(".chart").querySelectorAll(own).forEach(g => g.classList.toggle("hidden", off));
});
"""
