"""`jaxfair ask`: questions in words, an early end, mistakes in one line."""

import io

import pytest

from helpers import disclosure_cases as cases


@pytest.fixture
def run(tmp_path):
  return cases.write_questionnaire(tmp_path / "run")


@pytest.mark.slow
def test_it_asks_until_it_has_heard_enough(jaxfair, run, monkeypatch):
  text = "what?\n1\n1\n1\n1\n1\n"
  monkeypatch.setattr("sys.stdin", io.StringIO(text))
  ended = jaxfair("ask", run, "--delta", "0.2")
  assert ended.code == 0
  assert "What is your " in ended.out
  assert "please" in ended.out
  assert "Decision: " in ended.out
  assert "80% sure" in ended.out
  assert "Nobody needed to know " in ended.out


def test_it_writes_the_page(jaxfair, run, tmp_path):
  ended = jaxfair("ask", run, "--page", tmp_path / "ask.html")
  assert ended.code == 0
  assert "Loans" in (tmp_path / "ask.html").read_text()


def test_questions_may_be_one_s_own(jaxfair, refused, run, tmp_path, monkeypatch):
  texts = tmp_path / "texts.toml"
  columns = ("age", "job", "pay", "debt")
  texts.write_text("\n".join(f'{name} = "Tell us the {name}, please <b>"' for name in columns))
  monkeypatch.setattr("sys.stdin", io.StringIO("1\n1\n1\n1\n1\n"))
  ended = jaxfair("ask", run, "--delta", "0.2", "--questions", texts)
  assert "please <b>" in ended.out
  assert "What is your" not in ended.out
  page = tmp_path / "ask.html"
  assert jaxfair("ask", run, "--page", page, "--questions", texts).code == 0
  assert "Tell us the age, please \\u003cb>" in page.read_text()
  texts.write_text('aeg = "How old are you?"')
  assert "did you mean age?" in refused("ask", run, "--questions", texts)
  texts.write_text("age = 3")
  assert "age must be a text in quotes" in refused("ask", run, "--questions", texts)
  texts.write_text("age = ")
  assert "cannot be read" in refused("ask", run, "--questions", texts)


def test_a_folder_without_a_questionnaire_is_refused(refused):
  assert "jaxfair run configs/disclosure" in refused("ask", "nowhere")


def test_an_impossible_delta_is_refused(refused, run):
  assert "delta=0.7 must be in" in refused("ask", run, "--delta", "0.7")
