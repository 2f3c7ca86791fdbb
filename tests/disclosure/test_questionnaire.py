"""Interviews decide as the full model would, and the page agrees."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from helpers import browser
from helpers import disclosure_cases as cases
from jaxfair import checks, disclosure
from jaxfair.disclosure import _greedy_disclosure, _network, _questionnaire, _web_page
from jaxfair.disclosure._interview import Interview

RAW_CENTER = np.array([50, 0.5, 0.5, 0.5, 3000, 0], "f4")
RAW_FACTOR = np.array([1 / 30, 2, 2, 2, 1 / 2000, 1 / 500], "f4")


@pytest.fixture
def asking():
  _, params = cases.linear()
  return _questionnaire.Questionnaire(
    title="Loan & <credit>",
    class_names=("refused", "granted"),
    feature_names=cases.FEATURES,
    columns=cases.COLUMNS,
    sensitive=("age", "job", "pay", "debt"),
    network=_network.as_network(params),
    gaussian=disclosure.fit_gaussian(cases.people(2000, seed=9)),
    center=RAW_CENTER,
    factor=RAW_FACTOR,
  )


def answers_of(x):
  raw = x / RAW_FACTOR + RAW_CENTER
  return {
    "age": repr(float(raw[0])),
    "job": "abc"[int(np.argmax(x[1:4]))],
    "pay": repr(float(raw[4])),
    "debt": repr(float(raw[5])),
  }


def interviewed(interview, answers):
  while (column := interview.next_column()) is not None:
    interview.answer(column, answers[column])
  return interview.decision()


@pytest.mark.slow
@pytest.mark.parametrize(
  ("delta", "chooser", "told"),
  [(0.0, disclosure.ByProgress(), "certain"), (0.1, disclosure.ByVariance(), "90% sure")],
)
def test_an_interview_asks_what_the_greedy_disclosure_does(asking, tmp_path, delta, chooser, told):
  asking.save(tmp_path / "q.json")
  asking = _questionnaire.Questionnaire.read(tmp_path / "q.json")
  x = cases.people(256)[:12]
  found = disclosure.disclose(
    *cases.linear(),
    asking.gaussian,
    asking.asked,
    x,
    delta=delta,
    chooser=chooser,
    key=jax.random.key(0),
  )
  interview = Interview(asking, delta=delta)
  for person, order, label in zip(x, found.order, found.label, strict=True):
    interview.restart()
    ended = interviewed(interview, answers_of(person))
    wanted = [asking.sensitive[j] for j in order if j != _greedy_disclosure.NOT_ASKED]
    assert list(ended.asked) == wanted
    assert ended.label == asking.class_names[int(label)]
    assert {*ended.asked, *ended.never_asked} == set(asking.sensitive)
    assert ended.how_sure == (told if ended.never_asked else "certain")
  assert 0 < float(found.count.mean()) < 4


@pytest.mark.slow
def test_an_unfinished_interview_has_no_decision(asking):
  interview = Interview(asking, delta=0.0)
  assert interview.next_column() in asking.sensitive
  with pytest.raises(checks.ArgumentError, match="interview is not over"):
    interview.decision()


def test_answers_are_words_or_numbers(asking):
  assert asking.words("job") == ["a", "b", "c"]
  assert asking.words("age") == []
  assert asking.span("age") == pytest.approx((20, 80))
  assert asking.encoded("job", "b") == {1: -1.0, 2: 1.0, 3: -1.0}
  assert asking.encoded("age", "95") == {0: 1.0}
  with pytest.raises(checks.ArgumentError, match="job='d' is not known"):
    asking.encoded("job", "d")
  with pytest.raises(checks.ArgumentError, match="not a number"):
    asking.encoded("age", "old")


def test_columns_are_named_as_one_says_them():
  names = ("DRIVING_EXPERIENCE", "capital-gain", "pay", "PaidBy", "pay_0_")
  said = [_questionnaire.in_words(name) for name in names]
  assert said == ["driving experience", "capital gain", "pay", "PaidBy", "pay 0"]


def test_a_page_is_refused_for_networks(asking, tmp_path):
  _, params = cases.network()
  deep = dataclasses.replace(asking, network=_network.as_network(params))
  with pytest.raises(checks.ArgumentError, match="linear models with two"):
    _web_page.write_page(deep, tmp_path / "page.html")


DRIVER = """<script>
const people = PEOPLE, out = [];
for (const [d, given] of people) {
  delta = d;
  reset();
  const order = [];
  for (let form; (form = document.getElementById("form"));) {
    const column = form.dataset.column, field =
      document.getElementById("field");
    field.value = given[column];
    order.push(column);
    form.requestSubmit();
  }
  out.push([document.getElementById("label").textContent, order]);
}
document.body.innerHTML = "";
document.body.append(Object.assign(document.createElement("pre"),
  { id: "out", textContent: "OUT" + JSON.stringify(out) + "END" }));
</script></body>"""


@pytest.mark.slow
def test_the_page_asks_and_decides_as_the_terminal_does(asking, tmp_path):
  path = tmp_path / "page.html"
  _web_page.write_page(asking, path, delta=0.1)
  text = path.read_text(encoding="utf-8")
  assert "http://" not in text
  assert "https://" not in text
  assert "Loan &amp; &lt;credit&gt;" in text
  people = [(delta, answers_of(x)) for x in cases.people(256)[:6] for delta in (0.0, 0.1)]
  driver = DRIVER.replace("PEOPLE", json.dumps(people))
  path.write_text(text.replace("</body>", driver), encoding="utf-8")
  dom, complaints = browser.draw(path)
  assert complaints == []
  found = json.loads(dom.partition(">OUT")[2].partition("END<")[0])
  asked = {delta: Interview(asking, delta=delta) for delta in (0.0, 0.1)}
  for (delta, answers), (label, order) in zip(people, found, strict=True):
    interview = asked[delta]
    interview.restart()
    told = interviewed(interview, answers)
    assert (label, tuple(order)) == (told.label, told.asked)
