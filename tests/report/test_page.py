"""The page: self-contained, escaped, complete, and alive in a browser."""

import dataclasses
import html.parser
import json
import os
import re
import sys

import pytest

from helpers import browser
from jaxfair import checks, experiments, report
from jaxfair.experiments import Table, _config, _reading, _runs
from jaxfair.experiments._claims import Claim, Finding
from jaxfair.experiments._figures import Figure, Summary
from jaxfair.experiments._folders import RunError

EVIL = "<script>alert('x')</script> & <b>bold</b>"


def run(toy, folder, **values):
  made = _runs.plan(toy.study, values)
  experiments.execute(made, folder, say=lambda message: None)
  return report.write(_reading.read_run(folder, study=toy.study)).read_text("utf-8")


class Page(html.parser.HTMLParser):
  """Tags, what they load, and the text outside of scripts and styles."""

  def __init__(self, text):
    super().__init__()
    self.tags, self.loaded, self.text, self._inside = [], [], "", []
    self.feed(text)

  def handle_starttag(self, tag, attrs):
    self.tags.append(tag)
    if tag in ("script", "style"):
      self._inside.append(tag)
    for name, value in attrs:
      if name in ("src", "href", "srcset", "action", "data"):
        self.loaded.append(value)

  def handle_endtag(self, tag):
    if self._inside and tag == self._inside[-1]:
      self._inside.pop()

  def handle_data(self, text):
    if not self._inside:
      self.text += text


@pytest.fixture
def page(toy, tmp_path):
  return Page(run(toy, tmp_path / "r", title="Our run"))


@pytest.mark.slow
def test_nothing_is_loaded_from_anywhere(toy, tmp_path):
  text = run(toy, tmp_path / "r")
  page = Page(text)
  assert page.loaded == ["data:,"]  # no icon, so that browsers ask for none
  style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)[0]
  assert "url(" not in style
  assert "@import" not in style


def test_the_page_says_what_was_run(page):
  for words in (
    "Our run",
    "Draws numbers",
    "study: toy",
    "fixed seed 0",
    "not for release",
    "numbers are drawn",
    "spread 0.5",
    "computed in",
    "Config",
    "means = [0.0, 1.0, 2.0]",
    "Versions",
    "jaxlib",
  ):
    assert words in page.text, words
  assert "unfinished" not in page.text


def test_means_are_shown_with_their_intervals(toy, tmp_path):
  page = Page(run(toy, tmp_path / "r"))
  table = Table.read(tmp_path / "r" / "results.csv")
  values = table.where(mean=1.0, group="b")["value"]
  assert f"{values.mean():.3f} [" in page.text
  # Groups are rows, settings are columns.
  number = r"-?\d\.\d{3} \[-?\d\.\d{3}, -?\d\.\d{3}\]"
  assert re.search(rf"groupmean 0mean 1mean 2a({number}){{3}}b({number}){{3}}", page.text)


def test_claims_are_shown_with_verdict_interval_and_reason(page):
  assert re.search(
    r"A larger mean gives larger numbers\[Tab\. 1\][\d.]+ \[.*?✓ supported", page.text
  )
  assert "✗ not supported" in page.text
  assert "no rows with group=other" in page.text
  assert "- not run" in page.text


def test_figures_are_in_the_page_and_beside_it(toy, tmp_path):
  text = run(toy, tmp_path / "r")
  assert "id='figure-values'" in text
  assert (tmp_path / "r" / "figures" / "values.png").exists()


def test_what_a_run_for_release_measured_is_its_owner_s(toy, tmp_path):
  """On people without noise; settings and versions may be seen by others."""
  old = os.umask(0)
  try:
    run(toy, tmp_path / "r", seed="os")
  finally:
    os.umask(old)
  open_to_others = {
    str(path.relative_to(tmp_path / "r"))
    for path in (tmp_path / "r").rglob("*")
    if path.stat().st_mode & 0o077 and path.parent.name != "figures"
  }
  assert open_to_others <= {".lock", "cells", "config.toml", "versions.json"}


def test_names_are_escaped_wherever_they_come_from(toy, tmp_path):
  def evil(config, cell, context):
    context.say(EVIL)
    return Table({"seed": [0, 1], "group": [EVIL] * 2, "value": [1, 2]})

  study = dataclasses.replace(
    toy.study,
    summary=EVIL,
    run=evil,
    claims=(
      Claim(EVIL, EVIL, lambda t: Finding("supported", EVIL, 1, 0, 2), source=EVIL),
      Claim("why", EVIL, lambda t: Finding("not run", "s", why=EVIL)),
    ),
    figures=(
      Figure("f", EVIL, "group", "value", color="group", caption=EVIL),
      Figure("g", EVIL, "seed", "value", "line", facet="group", x_title=EVIL),
    ),
    summaries=(Summary(EVIL, by=("group",), values=("value",)),),
    notes=lambda config: [EVIL],
  )
  toy.study = study
  text = run(toy, tmp_path / "r", title=EVIL)
  page = Page(text)
  assert "b" not in page.tags
  assert page.tags.count("script") == text.count("<script")
  assert "alert('x')</script>" not in text
  assert page.text.count("<b>bold</b>") >= 8  # shown, as text


def test_an_unfinished_run_is_shown_and_marked(toy, tmp_path):
  toy.failures[2.0] = KeyboardInterrupt()
  with pytest.raises(KeyboardInterrupt):
    run(toy, tmp_path / "r")
  page = Page(report.write(_reading.read_run(tmp_path / "r", study=toy.study)).read_text())
  assert "unfinished: only the cells computed so far" in page.text
  assert "no rows with mean=2.0" in page.text  # why the claim was not run
  assert not (tmp_path / "r" / "results.csv").exists()


def test_a_run_with_a_key_from_the_system_does_not_claim_a_seed(toy, tmp_path):
  page = Page(run(toy, tmp_path / "r", seed="os"))
  assert "seed from the operating system" in page.text
  assert "reproducible" not in page.text


def test_columns_that_are_missing_or_odd_leave_gaps_not_errors(toy, tmp_path):
  rows = Table({"seed": [0, 1], "mean": [0, 0], "gone": [None, None], "inf": [float("inf"), 1.0]})
  toy.study = dataclasses.replace(
    toy.study,
    run=lambda config, cell, context: rows,
    figures=(
      Figure("none", "No figure", x="none", y="value"),
      Figure("gone", "Gone figure", x="seed", y="gone"),
    ),
    summaries=(
      Summary("Not there", by=("group",), values=("value",)),
      Summary("Partly", by=("mean",), values=("gone", "inf", "none")),
    ),
  )
  with pytest.raises(checks.ArgumentError, match=r"claim 'odd' names column 'value'"):
    run(toy, tmp_path / "r")
  page = Page(report.write(_reading.read_run(tmp_path / "r", study=toy.study)).read_text())
  for absent in ("No figure", "Gone figure", "Not there"):
    assert absent not in page.text
  assert "meangoneinf0-infinite" in page.text.replace("\n", "")
  assert "script" not in page.tags  # nothing to draw, so nothing to run


def test_what_is_no_run_is_refused(tmp_path, toy):
  with pytest.raises(RunError, match="is not a run directory"):
    report.write(_reading.read_run(tmp_path))
  with pytest.raises(RunError, match="is not a run directory"):
    report.write(_reading.read_run(tmp_path / "none"))
  (tmp_path / "config.toml").write_text("study = 'toy'")
  with pytest.raises(RunError, match="no finished cell yet; run it first"):
    report.write(_reading.read_run(tmp_path, study=toy.study))
  with pytest.raises(_config.ConfigError, match=r"config\.toml: study='toy' is"):
    report.write(_reading.read_run(tmp_path))
  (tmp_path / "config.toml").write_text("study = ")
  with pytest.raises(_config.ConfigError, match="not valid TOML"):
    report.write(_reading.read_run(tmp_path))


DRIVER = """<script>
const bar = document.querySelector("[data-tip]");
bar.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
const tipText = document.getElementById("tip").textContent;
const hidden = [0, 1].map(() => {
  document.querySelector(".legend button").click();
  return document.querySelectorAll("g.hidden").length;
});
document.title = "OUT" + JSON.stringify({ tip: tipText, hidden,
  wide: document.documentElement.scrollWidth - innerWidth }) + "END";
</script></body>"""


@pytest.mark.slow
def test_a_browser_draws_the_page_without_complaint(toy, tmp_path):
  name = "<i>a</i> & b"
  values = Table({"seed": [0, 1], "group": [name] * 2, "mean": [0, 0], "value": [1, 2]})
  toy.study = dataclasses.replace(toy.study, run=lambda config, cell, context: values)
  run(toy, tmp_path / "r", means=[0.0])
  path = tmp_path / "r" / "report.html"
  path.write_text(path.read_text().replace("</body>", DRIVER))
  dom, complaints = browser.draw(path, size=(390, 844))
  assert complaints == []
  told = json.loads(
    re.search("<title>OUT(.*)END</title>", dom)
    .group(1)
    .replace("&lt;", "<")
    .replace("&gt;", ">")
    .replace("&amp;", "&")
  )
  assert told["tip"].startswith(f"0, {name}: 1.500 [")  # the name itself, not italics
  assert told["hidden"] == [1, 0]  # by the legend, and back
  assert told["wide"] <= 0  # nothing sticks out of a narrow window


@pytest.mark.slow
def test_a_page_can_be_written_again(toy, tmp_path):
  first = run(toy, tmp_path / "r")
  again = report.write(_reading.read_run(tmp_path / "r", study=toy.study)).read_text()
  assert first == again
  claims = json.loads((tmp_path / "r" / "claims.json").read_text())
  assert len(claims) == 3


def judged_study(toy, **accuracy):
  """A study of models by name, each with a balanced accuracy, for two groups."""

  def rows(config, cell, context):
    found = []
    for model, balanced in accuracy.items():
      for seed in range(6):
        for group, count in (("many", 300), ("few", 8), ("everyone", 308)):
          found.append(
            {
              "model": model,
              "seed": seed,
              "group": group,
              "count": count,
              "accuracy": 0.7 + 0.01 * seed,
              "balanced_accuracy": balanced + 0.001 * seed,
              "majority_accuracy": 0.7,
              "majority_balanced_accuracy": 0.5,
              "balanced_accuracy_se": 0.03,
              "one_class_share": 0.8,
              "demographic_parity_difference": 0.001,
            }
          )
    return Table.from_rows(found)

  toy.study = dataclasses.replace(
    toy.study,
    cells=lambda config: [{"all": "models"}],
    run=rows,
    plain={"model": "plain"},
    claims=(),
    figures=(),
    summaries=(
      Summary("By group", ("model", "group"), ("accuracy",)),
      Summary("Gaps", ("model",), ("demographic_parity_difference",), {"group": "everyone"}),
    ),
  )


def test_a_useless_model_is_flagged_at_the_top_and_its_gap_is_not_called_fair(toy, tmp_path):
  judged_study(toy, plain=0.8, private=0.495)
  text = run(toy, tmp_path / "r")
  assert 'class="alarm"' in text
  assert text.index('class="alarm"') < text.index("By group")
  page = Page(text)
  assert "private is not better than the majority class" in page.text
  assert page.text.count("says nothing: useless model") == 1
  assert "majority class (epsilon 0, gap 0)0.7000.500" in page.text
  assert "plain (plain model)" in page.text


def test_useful_models_raise_no_alarm_and_small_groups_have_no_interval(toy, tmp_path):
  judged_study(toy, plain=0.8, private=0.7)
  text = run(toy, tmp_path / "r")
  assert 'class="alarm"' not in text
  page = Page(text)
  assert "useless model" not in page.text
  assert "few n = 80.725 too few people for an interval" in page.text
  assert re.search(r"many n = 3000\.725 \[", page.text)


def test_without_matplotlib_the_page_is_whole_and_only_files_are_missing(
  toy, tmp_path, monkeypatch
):
  monkeypatch.setitem(sys.modules, "matplotlib", None)
  page = run(toy, tmp_path / "r")
  assert "<svg" in page
  assert not list((tmp_path / "r" / "figures").iterdir())
