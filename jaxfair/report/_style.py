"""The page's style sheet."""

STYLE = """
:root { color-scheme: light; --ink: #1b1f24; --quiet: #57606a; --line: #d8dee4;
  --good: #00694b; --bad: #9c3a00; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; }
header p { margin: .25rem 0; color: var(--quiet); }
.badges span { display: inline-block; margin: .25rem .4rem .25rem 0;
  padding: .1rem .6rem; border: 1px solid var(--line); border-radius: 1rem;
  font-size: .85rem; }
.notes { border-left: 4px solid #e69f00; padding: .1rem 1rem;
  margin-top: 1.5rem; background: #fff8e8; }
.notes h2 { margin-top: .5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .9rem .35rem 0;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
thead th { color: var(--quiet); font-weight: 600; white-space: nowrap; }
tbody th { font-weight: 600; white-space: nowrap; }
small { color: var(--quiet); }
td small { white-space: nowrap; }
.claims small { white-space: normal; }
.caption { color: var(--quiet); font-size: .9rem; margin-top: .25rem; }
.supported { color: var(--good); font-weight: 600; white-space: nowrap; }
.undecided { font-weight: 600; white-space: nowrap; }
.not-supported { color: var(--bad); font-weight: 600; white-space: nowrap; }
.not-run { color: var(--quiet); white-space: nowrap; }
pre { background: #f6f8fa; padding: .75rem 1rem; overflow-x: auto; }
details { margin: .5rem 0; }
.pictures img { max-width: 100%; height: auto; }
@media (max-width: 40rem) {
  main { padding: 1.25rem 1rem 3rem; }
  .claims, .claims tbody, .claims tr, .claims td { display: block; }
  .claims thead { display: none; }
  .claims tr { border-bottom: 1px solid var(--line); padding: .4rem 0; }
  .claims td { border: 0; padding: .15rem 0; } }
@media print { main { max-width: none; padding: 0; }
  section { break-inside: avoid; } details { display: none; } }
"""
