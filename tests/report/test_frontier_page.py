"""The page to choose from, read as text and driven in a browser."""

import json
import re

import numpy as np
import pytest

from helpers import browser, frontier_runs
from jaxfair import frontier
from jaxfair.experiments import _frontiers
from jaxfair.frontier import _objectives
from jaxfair.report import _frontier_page


@pytest.fixture(scope="module")
def written(tmp_path_factory):
  folder = frontier_runs.write(tmp_path_factory.mktemp("page") / "r")
  found = _frontiers.read_frontier(folder)
  path = folder / "frontier.html"
  _frontier_page.write_frontier(found, path, notes=("mind </script> this",))
  return found, path


def data_of(path):
  text = path.read_text(encoding="utf-8")
  part = text.partition('type="application/json">')[2]
  return json.loads(part.partition("</script>")[0])


@pytest.mark.slow
def test_the_page_stands_alone_and_shows_names_as_they_are(written):
  _, path = written
  text = path.read_text(encoding="utf-8")
  assert "http://" not in text
  assert "https://" not in text
  assert not re.search(r'(src|href)="(?!data:)', text)
  assert "What can &lt;b&gt;be&lt;/b&gt; had &amp; why" in text
  assert "mind &lt;/script&gt; this" in text
  assert "it is made up" in text
  assert "{{" not in text
  assert "not for release" in text


def test_every_point_has_its_interval_its_chance_and_its_line(written):
  found, path = written
  data = data_of(path)
  low, high = _objectives.bounds(found.points)
  for i, point in enumerate(data["points"]):
    np.testing.assert_allclose(point["v"], found.points.means[i])
    np.testing.assert_allclose(point["lo"], low[i])
    np.testing.assert_allclose(point["hi"], high[i])
    assert point["p"] == found.attained.probability[i]
    sets = " ".join(f"--set {one}" for one in point["sets"])
    assert f"{data['release']} {i} --out {data['out']}" == found.command(i)
    trained = found._replace(releases="").command(i)  # of a study that does not say how to release
    assert f"{data['run']} {sets} --out {data['out']}" == trained


def test_methods_are_compared_if_there_are_several(written, tmp_path):
  found, path = written
  text = path.read_text(encoding="utf-8")
  assert "Comparison of methods" in text
  for name, share in found.reach.items():
    assert f"<td>{name}</td><td>{share.settings}</td>" in text
  rows = frontier_runs.table().where(threshold=(0.6, 0.9))
  one = _frontiers.read_frontier(frontier_runs.write(tmp_path / "r", rows))
  _frontier_page.write_frontier(one, tmp_path / "page.html")
  assert "Who reaches" not in (tmp_path / "page.html").read_text()


def test_no_privacy_and_one_seed_are_written_as_json(tmp_path):
  rows = frontier_runs.table(seeds=1)
  epsilon = np.where(rows["epsilon"] == 8, np.inf, rows["epsilon"])
  folder = frontier_runs.write(tmp_path / "r", rows.plus(epsilon=epsilon))
  config = folder / "config.toml"
  config.write_text(config.read_text().replace("8.0]", "inf]"))
  found = _frontiers.read_frontier(folder)
  _frontier_page.write_frontier(found, tmp_path / "page.html")
  points = data_of(tmp_path / "page.html")["points"]
  assert points[-1]["v"][0] is None
  assert points[0]["lo"] == [None] * 4
  assert "no intervals" in (tmp_path / "page.html").read_text()


def test_settings_that_a_constant_would_replace_are_red(tmp_path):
  rows = frontier_runs.table()
  size = len(rows)
  weak = rows["epsilon"] == rows["epsilon"].min()
  judged = {
    "balanced_accuracy": np.where(weak, 0.5, 0.7),
    "majority_accuracy": np.full(size, 0.6),
    "majority_balanced_accuracy": np.full(size, 0.5),
    "balanced_accuracy_se": np.full(size, 0.01),
    "one_class_share": np.full(size, 0.8),
  }
  found = _frontiers.read_frontier(frontier_runs.write(tmp_path / "r", rows.plus(**judged)))
  _frontier_page.write_frontier(found, tmp_path / "page.html")
  data = data_of(tmp_path / "page.html")
  assert data["majority"] == pytest.approx(0.6)
  for point in data["points"]:
    assert bool(point["why"]) == (point["v"][0] == rows["epsilon"].min())
  text = (tmp_path / "page.html").read_text()
  assert "are no better than a constant" in text
  assert "majority class alone: accuracy 0.600, gap 0, epsilon 0" in text


# A slider by its arrow keys is what `input` events are: state by state.
DRIVER = """<script>
const out = [];
const push = (name, at) => {
  const slider = document.getElementById("limit-" + name);
  slider.value = at < 0 ? Number(slider.max) + 1 + at : at;
  slider.dispatchEvent(new Event("input"));
};
const read = () => out.push({ limits: [...state.limits], by: state.by,
  strict: state.strict, left: looks().left.map(p => p.i),
  chosen: document.getElementById("choice").dataset.i ?? null,
  command: document.getElementById("command")?.textContent ?? null,
  words: document.getElementById("choice").textContent,
  rows: document.querySelectorAll("#table tbody tr:not(.sets)").length,
  lines: [...document.querySelectorAll("#table .sets")].map(x => x.textContent),
  each: [...document.querySelectorAll("#each tbody tr")].map(
    x => x.querySelector("button")?.dataset.look ?? x.textContent),
  hash: location.hash });
// Charts are drawn a frame later, and a busy machine has few frames.
const once = (ready, next, tries = 400) => ready() || !tries ? next() :
  setTimeout(() => once(ready, next, tries - 1), 20);
const drawn = () => document.querySelector("#space .mark") &&
  document.querySelector("#pairs .mark");
once(drawn, () => {
read();
push("epsilon", 0); read();
push("gap", 2); read();
push("gap", -1); push("epsilon", -1); push("accuracy", 9); read();
document.getElementById("strict").click(); read();
document.getElementById("by").value = "0";
document.getElementById("by").dispatchEvent(new Event("change")); read();
push("gap", 0); read();
document.getElementById("reset").click(); read();
document.querySelector("[data-wish=fair]").click(); read();
document.getElementById("reset").click();
let settled = false;
requestAnimationFrame(() => { settled = true; });
once(() => settled, () => {
const space = document.getElementById("space"), before = space.innerHTML;
space.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }));
once(() => space.innerHTML !== before, () => {
const turned = space.innerHTML !== before;
const look = document.querySelector("#each tbody tr:last-child button");
look.focus(); look.click();
const at = document.activeElement, stays = at !== look &&
  at.dataset.look === look.dataset.look && at.closest("table").id === "each";
document.querySelector("#pairs .mark").dispatchEvent(
  new MouseEvent("click", { bubbles: true }));
document.querySelector("#pairs .mark").dispatchEvent(
  new PointerEvent("pointerover", { bubbles: true }));
document.title = "OUT" + JSON.stringify({ states: out, turned, stays,
  pairs: document.querySelectorAll("#pairs svg").length,
  looked: !document.getElementById("looked").hidden,
  tip: document.getElementById("tip").textContent,
  wide: document.documentElement.scrollWidth - innerWidth,
  marks: document.querySelectorAll("#space .mark").length }) + "END";
});
});
});
</script></body>"""


@pytest.fixture(scope="module")
def driven(written, tmp_path_factory):
  """What the browser did and said, in a window as narrow as it allows."""
  _, path = written
  page = tmp_path_factory.mktemp("browser") / "page.html"
  text = path.read_text(encoding="utf-8").replace("</body>", DRIVER)
  page.write_text(text, encoding="utf-8")
  drawn = browser.draw(page, size=(390, 844))
  assert drawn.complaints == []
  title = drawn.dom.partition("<title>OUT")[2].partition("END</title>")[0]
  plain = title.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
  return json.loads(plain)


@pytest.mark.slow
def test_the_page_recommends_what_specify_and_best_do(driven, written):
  found, _ = written
  points = found.points
  for state in driven["states"]:
    limits = {
      name: limit
      for name, limit in zip(points.names, state["limits"], strict=True)
      if limit is not None
    }
    # The page asks for the whole 95% interval: 97.5% on one side.
    confidence = 0.975 if state["strict"] else None
    left = frontier.specify(points, limits, confidence=confidence)
    assert state["left"] == np.flatnonzero(left.satisfied).tolist()
    by = points.names[state["by"]]
    chosen = frontier.best(points, left.satisfied, objective=by)
    if chosen is None:
      assert state["chosen"] is None
      assert "Loosen one of them: gap at most" in state["words"]
    else:
      assert int(state["chosen"]) == chosen
      assert state["command"] == found.command(chosen)
      assert state["rows"] == (left.satisfied & found.attained.on).sum()
      assert all(line.startswith("--set ") for line in state["lines"])
    methods = np.array(found.methods)
    for name, told in zip(found.reach, state["each"], strict=True):
      own = left.satisfied & (methods == name)
      if own.any():
        assert int(told) == frontier.best(points, own, objective=by)
      else:
        assert told == f"{name}no setting satisfies the limits"


@pytest.mark.slow
def test_sliders_wishes_and_limits_do_what_they_say(driven, written):
  found, _ = written
  free, private, both, accurate, strict, cheap, none, reset, fair = driven["states"]
  assert free["limits"] == reset["limits"] == [None] * 4
  assert len(free["left"]) == 18
  assert private["limits"][0] == 1.0
  assert 0 < len(both["left"]) < len(private["left"]) < 18
  assert accurate["limits"][2] is not None
  assert len(strict["left"]) < len(accurate["left"])
  assert cheap["by"] == 0
  assert none["left"] == []
  assert int(fair["chosen"]) == frontier.select(found.points, "fair")
  assert free["hash"] in ("", "#")
  assert both["hash"].startswith("#epsilon=1&gap=")


@pytest.mark.slow
def test_it_turns_by_keyboard_and_points_can_be_looked_at(driven):
  assert driven["turned"]
  assert driven["stays"]  # who looks at a setting by keyboard
  assert driven["pairs"] == 6  # every two of the four objectives
  assert driven["looked"]
  assert "--set" in driven["tip"]
  assert driven["marks"] == 18
  assert driven["wide"] <= 0  # nothing sticks out of a narrow window
