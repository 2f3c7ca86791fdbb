"""Answers for release: charged first, within the budget, given once."""

import json
import os
import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest

from jaxfair import accounting, checks, pate
from jaxfair.accounting import _guarantee, _locked_file
from jaxfair.pate import _answer_log, _rules

BUDGET = (2.0, 1e-5)
GNMAX = pate.GnMax(20.0)
CONFIDENT = pate.ConfidentGnMax(threshold=60, sigma_threshold=30.0, sigma_answer=12.0)


@pytest.fixture
def counts():
  rng = np.random.default_rng(0)
  first = rng.integers(30, 101, 400)
  return np.stack([first, 100 - first], axis=1)


def begin(folder, rule=GNMAX, **options):
  options = {"budget": BUDGET, "seed": 7} | options
  return pate.Answerer(folder, rule, **options)


def spent(rho):
  return accounting.zcdp_epsilon(rho=rho, delta=BUDGET[1])


def test_the_budget_is_spent_to_the_last_query_it_pays_for(tmp_path, counts):
  with begin(tmp_path, batch_size=37) as answerer:
    answers = answerer.answer(counts, first=0)
    count = int(answers.asked.sum())
    assert answerer.asked == count < 400
  # Each label is 1/sigma^2-zCDP, and the rest is a closed form.
  assert spent(count / 400) <= BUDGET[0] < spent((count + 1) / 400)
  assert answers.asked[:count].all()
  np.testing.assert_array_equal(answers.asked, answers.answered)
  assert set(answers.labels[:count]) == {0, 1}
  assert (answers.labels[count:] == pate.NO_ANSWER).all()
  assert answers.guarantee.epsilon == pytest.approx(spent(count / 400))
  assert answers.guarantee.relation is accounting.Relation.REPLACE_ONE


def test_failed_tests_are_charged_as_tests_alone(tmp_path, counts):
  with begin(tmp_path, CONFIDENT, batch_size=50) as answerer:
    answers = answerer.answer(counts, first=0)
    rho = sum(unit.rho * n for unit, n in answerer.ledger._units)
  asked, answered = int(answers.asked.sum()), int(answers.answered.sum())
  test, answer = 1 / (2 * 30.0**2), 1 / 12.0**2
  assert 0 < answered < asked < 400
  assert rho == pytest.approx(asked * test + answered * answer)
  # One query more might have been answered, and that would not have fitted.
  assert spent(rho) <= BUDGET[0] < spent(rho + test + answer)
  assert not answers.answered[asked:].any()
  assert ((answers.labels >= 0) == answers.answered).all()
  # The spend tells of the answers: what is published is the budget.
  assert answers.guarantee.epsilon == BUDGET[0]
  assert answers.guarantee.delta == BUDGET[1]


def test_the_votes_do_not_decide_when_it_stops(tmp_path, counts):
  stops = []
  for name, votes in (("a", counts), ("b", 100 - counts), ("c", counts * 0)):
    with begin(tmp_path / name, seed=None) as answerer:
      stops.append(int(answerer.answer(votes, first=0).asked.sum()))
  assert len(set(stops)) == 1


def test_queries_in_the_log_are_not_answered_again(tmp_path, counts):
  rich = {"seed": None, "budget": (20.0, 1e-5)}
  with begin(tmp_path, CONFIDENT, **rich) as answerer:
    before = answerer.answer(counts[:100], first=0)
    epsilon = answerer.ledger.epsilon()
  with begin(tmp_path, CONFIDENT, **rich) as answerer:
    assert answerer.asked == 100
    # Even if the teachers were to say something else.
    again = answerer.answer(counts[:100, ::-1], first=0)
    assert answerer.ledger.epsilon() == epsilon
    part = answerer.answer(counts[40:60], first=40)
    more = answerer.answer(counts[90:120], first=90)
    assert answerer.asked == 120
  np.testing.assert_array_equal(before.labels, again.labels)
  np.testing.assert_array_equal(before.labels[40:60], part.labels)
  np.testing.assert_array_equal(before.labels[90:], more.labels[:10])


@pytest.mark.parametrize("rule", [GNMAX, CONFIDENT, _rules.NoisyVotes(20.0)])
def test_answers_do_not_depend_on_interruptions(tmp_path, counts, rule):
  with begin(tmp_path / "whole", rule, batch_size=20) as answerer:
    whole = answerer.answer(counts[:60], first=0)
  for end in (20, 40, 60):
    with begin(tmp_path / "parts", rule, batch_size=20) as answerer:
      parts = answerer.answer(counts[:end], first=0)
  for ours, theirs in zip(whole, parts, strict=True):
    np.testing.assert_array_equal(ours, theirs)
  assert not whole.for_release


class Killed(BaseException):
  """Stands for a kill: nothing handles it."""


class Deaths:
  """Dies at the n-th write to the disk, before or after it."""

  def __init__(self, monkeypatch, at, after):
    self.writes = 0
    original = accounting._locked_file.write_line

    def write_line(file, offset, line):
      self.writes += 1
      if self.writes == at and not after:
        raise Killed
      end = original(file, offset, line)
      if self.writes == at:
        raise Killed
      return end

    monkeypatch.setattr(accounting._locked_file, "write_line", write_line)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [GNMAX, CONFIDENT])
@pytest.mark.parametrize("after", [False, True])
def test_a_death_at_any_write_loses_and_leaks_nothing(tmp_path, counts, monkeypatch, rule, after):
  votes = counts[:30]
  with begin(tmp_path / "whole", rule, batch_size=10) as answerer:
    whole = answerer.answer(votes, first=0)
    spend = answerer.ledger.epsilon()
  deaths = 0
  for at in range(1, 40):
    folder = tmp_path / str(at)
    with monkeypatch.context() as patch, begin(folder, rule, batch_size=10) as answerer:
      Deaths(patch, at, after)
      try:
        answerer.answer(votes, first=0)
        break
      except Killed:
        deaths += 1
    with begin(folder, rule, batch_size=10) as answerer:
      resumed = answerer.answer(votes, first=0)
      assert answerer.ledger.epsilon() == spend  # neither less nor more
    np.testing.assert_array_equal(resumed.labels, whole.labels)
  assert deaths >= (6 if rule is GNMAX else 12)


def test_what_a_crash_paid_for_is_not_paid_twice_at_the_end(tmp_path, counts):
  """The last batch fits once only: its charge must be found again."""
  with begin(tmp_path, batch_size=400) as answerer:
    count = answerer._affordable(400, GNMAX.answer)
    answerer._pay("answers", 0, count, GNMAX.answer, counts[:count])
  with begin(tmp_path, batch_size=10) as answerer:
    with pytest.raises(checks.ArgumentError, match="charged together"):
      answerer.answer(counts[:3], first=0)
    answers = answerer.answer(counts, first=0)
    assert len(answerer.ledger) == 1
  assert answers.asked.sum() == count


def test_more_queries_after_a_crash_are_paid_for(tmp_path, counts):
  """Ten were tested, the answers of five were paid for, then it crashed."""
  with begin(tmp_path, CONFIDENT, budget=(20.0, 1e-5)) as answerer:
    answerer._pay("tests", 0, 10, CONFIDENT.test, counts[:10])
    answerer._log.add_tests(np.ones(10, bool))
    answerer._pay("answers", 0, 5, CONFIDENT.answer, counts[:5])
  with begin(tmp_path, CONFIDENT, budget=(20.0, 1e-5)) as answerer:
    answers = answerer.answer(counts[:30], first=0)
    paid = sum(e.event.count for e in answerer.ledger if "answers" in e.id)
  assert answers.answered[:10].all()
  assert paid == answers.answered.sum()


def test_a_torn_line_is_dropped(tmp_path, counts):
  with begin(tmp_path, batch_size=10) as answerer:
    whole = answerer.answer(counts[:20], first=0)
  log = tmp_path / "answers.jsonl"
  log.write_bytes(log.read_bytes()[:-9])
  with begin(tmp_path, batch_size=10) as answerer:
    assert answerer.asked == 10
    again = answerer.answer(counts[:20], first=0)
  np.testing.assert_array_equal(whole.labels, again.labels)
  for line in log.read_text().splitlines():
    json.loads(line)


def test_a_lost_log_is_paid_for_again(tmp_path, counts):
  with begin(tmp_path) as answerer:
    answerer.answer(counts[:20], first=0)
    once = answerer.ledger.epsilon()
  (tmp_path / "answers.jsonl").unlink()
  with begin(tmp_path) as answerer:
    answerer.answer(counts[:20], first=0)
    assert answerer.ledger.epsilon() > once


def test_a_shared_ledger_pays_for_everything(tmp_path, counts):
  ledger = accounting.Ledger.create(
    tmp_path / "all.jsonl", data="adult", budget=BUDGET, relation=accounting.Relation.REPLACE_ONE
  )
  with ledger:
    ledger.charge(accounting.ZCdp(0.02), id="something else")
    with begin(tmp_path / "a", ledger=ledger) as answerer:
      count = int(answerer.answer(counts, first=0).asked.sum())
    rho = 0.02 + count / 400
    assert spent(rho) <= BUDGET[0] < spent(rho + 1 / 400)
    ledger.charge(accounting.ZCdp(1e-9), id="still open")


def test_a_data_set_is_charged_the_budget_before_the_first_answer(tmp_path, counts, monkeypatch):
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "state"))
  book = accounting.DatasetLedger.of(b"adult", name="adult")
  with begin(tmp_path / "study", dataset_ledger=book):
    assert book.spent(BUDGET[1]) == []  # a seed: no release
  for _ in range(2):  # begun, and continued
    with begin(tmp_path / "a", seed=None, dataset_ledger=book) as answerer:
      (found,) = book.spent(BUDGET[1])
      answerer.answer(counts, first=0)
  assert book.spent(BUDGET[1]) == [found]
  assert found.guarantee.relation is accounting.Relation.REPLACE_ONE
  assert found.releases == 1
  assert found.guarantee.epsilon == pytest.approx(BUDGET[0], rel=1e-6)
  assert found.guarantee.epsilon >= answerer.ledger.epsilon()
  book.set_budget((1.5 * BUDGET[0], 2 * BUDGET[1]), relation=found.guarantee.relation)
  with pytest.raises(_guarantee.BudgetError):
    begin(tmp_path / "b", seed=None, dataset_ledger=book)
  accounting.Ledger.open(tmp_path / "b" / "ledger.jsonl").close()  # not held


def test_laplace_answers_stop_in_time(tmp_path, counts):
  rule = pate.LaplaceMax(50.0)
  with begin(tmp_path, rule, budget=(0.5, 0.0)) as answerer:
    answers = answerer.answer(counts, first=0)
  # 2 / 50 each. The twelfth would end at 0.48 + 0.04.
  assert answers.asked.sum() == 12
  assert answers.guarantee.epsilon == pytest.approx(0.48)


def test_releases_draw_from_the_operating_system(tmp_path, counts, monkeypatch):
  drawn, original = [], os.urandom
  monkeypatch.setattr(os, "urandom", lambda n: drawn.append(n) or original(n))
  with begin(tmp_path, pate.GnMax(1.0), seed=None, budget=(50.0, 1e-5)) as one:
    assert one.answer(counts[:3], first=0).for_release
  assert drawn == [32]
  secret = tmp_path / "private" / "secret_key"
  assert stat.S_IMODE(secret.stat().st_mode) == 0o600
  assert stat.S_IMODE(secret.parent.stat().st_mode) == 0o700


OURS = {"seed": None, "budget": (20.0, 1e-5), "batch_size": 10}
RULES = [CONFIDENT, _rules.NoisyVotes(20.0)]


def released(folder, rule, counts):
  """The answers, and what the ledger holds afterwards."""
  with begin(folder, rule, **OURS) as answerer:
    answers = answerer.answer(counts, first=0)
    return answers.labels.tolist(), [entry.id for entry in answerer.ledger]


@pytest.mark.parametrize("rule", RULES)
def test_an_older_log_gives_the_same_answers_for_the_same_charge(tmp_path, counts, rule):
  """As often as somebody puts it back: one release, one charge."""
  log = tmp_path / "answers.jsonl"
  begin(tmp_path, rule, **OURS).close()
  states = [log.read_bytes()]
  for end in (10, 20, 30):
    once = released(tmp_path, rule, counts[:end])
    states.append(log.read_bytes())
  for old in (*states, *(states[-1][:cut] for cut in range(600, 1200, 97))):
    log.write_bytes(old)
    assert released(tmp_path, rule, counts[:30]) == once


@pytest.mark.parametrize("rule", RULES)
def test_an_older_log_is_not_answered_with_other_votes(tmp_path, counts, rule):
  """The difference of two answers with one noise is that of the votes."""
  log = tmp_path / "answers.jsonl"
  begin(tmp_path, rule, **OURS).close()
  old = log.read_bytes()
  once = released(tmp_path, rule, counts[:30])
  other = counts[:30].copy()
  other[3] += (1, -1)
  log.write_bytes(old)
  for _ in range(2):
    with pytest.raises(_locked_file.LedgerError, match="charged for other votes"):
      released(tmp_path, rule, other)
  assert len(log.read_text().splitlines()) == 1
  assert released(tmp_path, rule, counts[:30]) == once


@pytest.mark.parametrize("rule", RULES)
def test_a_copy_of_the_folder_gives_the_same_answers(tmp_path, counts, rule):
  released(tmp_path / "a", rule, counts[:10])
  shutil.copytree(tmp_path / "a", tmp_path / "b")
  once = released(tmp_path / "a", rule, counts[:30])
  assert released(tmp_path / "b", rule, counts[:30]) == once
  # Whoever begins anew pays, and gets other noise.
  assert released(tmp_path / "c", rule, counts[:30])[0] != once[0]


def test_a_new_log_has_noise_of_its_own(tmp_path, counts):
  """It is charged as a second release of the same votes, so it must be one."""
  once = released(tmp_path, RULES[1], counts[:10])
  (tmp_path / "answers.jsonl").unlink()
  again = released(tmp_path, RULES[1], counts[:10])
  assert len(again[1]) == 2 * len(once[1])
  assert again[0] != once[0]


def test_an_older_ledger_is_refused(tmp_path, counts):
  ledger = tmp_path / "ledger.jsonl"
  released(tmp_path, CONFIDENT, counts[:10])
  old = ledger.read_bytes()
  released(tmp_path, CONFIDENT, counts[:20])
  ledger.write_bytes(old)
  with pytest.raises(_answer_log.AnswerLogError, match="older than the answers"):
    begin(tmp_path, CONFIDENT, **OURS)
  ledger.unlink()
  with pytest.raises(_answer_log.AnswerLogError, match="charged to ledger"):
    begin(tmp_path, CONFIDENT, **OURS)
  with pytest.raises(_answer_log.AnswerLogError, match="charged to ledger"):
    begin(tmp_path, CONFIDENT, **OURS)  # the refusal left no lock


def test_finished_answers_stay_and_their_secret_goes(tmp_path, counts):
  log = tmp_path / "answers.jsonl"
  released(tmp_path, CONFIDENT, counts[:10])
  old = log.read_bytes()
  once = released(tmp_path, CONFIDENT, counts[:20])
  with begin(tmp_path, CONFIDENT, **OURS) as answerer:
    answerer.finish()
    with pytest.raises(_answer_log.AnswerLogError, match="finished"):
      answerer.answer(counts[:30], first=0)
    answerer.finish()
  assert not (tmp_path / "private" / "secret_key").exists()
  assert released(tmp_path, CONFIDENT, counts[:20]) == once
  with pytest.raises(_answer_log.AnswerLogError, match="finished"):
    released(tmp_path, CONFIDENT, counts[:30])
  log.write_bytes(old)  # nor is an older log mended with fresh noise
  with pytest.raises(_answer_log.AnswerLogError, match="finished"):
    released(tmp_path, CONFIDENT, counts[:20])


def test_another_secret_is_refused(tmp_path, counts):
  released(tmp_path, CONFIDENT, counts[:10])
  secret = tmp_path / "private" / "secret_key"
  secret.write_text("0" * 64)
  with pytest.raises(_answer_log.AnswerLogError, match="another secret"):
    begin(tmp_path, CONFIDENT, **OURS)
  for damage in ("", "0" * 63, "z" * 64, "0" * 64 + "\n"):
    secret.write_text(damage)
    with pytest.raises(_locked_file.LedgerError, match="secret_key is damaged"):
      begin(tmp_path, CONFIDENT, **OURS)


@pytest.mark.parametrize(
  ("options", "told"),
  [
    ({"rule": pate.GnMax(21.0)}, "holds answers with rule="),
    ({"seed": None}, "holds answers with seed=7, not None"),
    ({"budget": (3.0, 1e-5)}, r"budget=\(3.0, 1e-05\) differs"),
    ({"batch_size": 0}, "batch_size=0 must be at least 1"),
    ({"seed": -1}, "seed=-1 must be at least 0"),
  ],
)
def test_a_folder_with_other_answers_is_refused(tmp_path, counts, options, told):
  with begin(tmp_path) as answerer:
    answerer.answer(counts[:5], first=0)
  with pytest.raises(checks.JaxfairError, match=told):
    begin(tmp_path, **options)
  begin(tmp_path).close()  # the refusal left no lock


def test_impossible_requests_are_refused(tmp_path, counts):
  with pytest.raises(checks.ArgumentError, match="budget is missing"):
    begin(tmp_path / "a", budget=None)
  ledger = accounting.Ledger.create(
    tmp_path / "l.jsonl",
    data="adult",
    budget=BUDGET,
    relation=accounting.Relation.ADD_OR_REMOVE_ONE,
  )
  with ledger, pytest.raises(checks.ArgumentError, match="added or removed"):
    begin(tmp_path / "b", ledger=ledger)
  with begin(tmp_path / "c") as answerer:
    with pytest.raises(checks.ArgumentError, match="in order, without gaps"):
      answerer.answer(counts, first=1)
    with pytest.raises(checks.ArgumentError, match="votes are whole"):
      answerer.answer(counts / 2, first=0)
    with pytest.raises(checks.JaxfairError, match="is being written by"):
      begin(tmp_path / "c")
  log = tmp_path / "c" / "answers.jsonl"
  log.write_text(log.read_text() + '{"answers":5,"count":1,"labels":[0]}\n')
  with pytest.raises(_answer_log.AnswerLogError, match=r"line 2.* another folder"):
    begin(tmp_path / "c")


# One process that has everything loaded forks the answerers it then kills.
SCRIPT = """
import os, random, select, signal, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from jaxfair import accounting, pate

folder, trials = sys.argv[1], int(sys.argv[2])
rng = random.Random(0)
sync = os.fsync
os.fsync = lambda handle: (time.sleep(rng.random() * 0.001), sync(handle))
counts = np.stack([np.arange(300) % 41 + 30, 70 - np.arange(300) % 41], axis=1)
rule = pate.ConfidentGnMax(55, 20.0, 15.0)
budget = (4.0, 1e-5)
midway = []
for trial in range(trials):
  where = os.path.join(folder, str(trial))
  seen = {}
  for life in range(4):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
      os.close(read)
      with pate.Answerer(where, rule, budget=budget, batch_size=5) as answerer:
        os.write(write, b"begun\\n")
        for end in range(5, 301, 5):
          found = answerer.answer(counts[:end], first=0)
          os.write(write, "".join(
            f"{i} {label}\\n" for i, label in enumerate(found.labels)
            if found.asked[i]).encode())
      os._exit(0)
    os.close(write)
    select.select([read], [], [], 10)
    time.sleep(rng.random() * 0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
      lines = [line.split() for line in pipe.read().split("\\n")[:-1]]
    for query, label in (line for line in lines if len(line) == 2):
      if seen.setdefault(query, label) != label:
        sys.exit(f"trial {trial}: query {query} was answered twice")
    midway.append((trial, len(seen)))
  with pate.Answerer(where, rule) as answerer:
    ledger = answerer.ledger
    tests = sum(e.event.count for e in ledger if ": tests" in e.id)
    answers = sum(e.event.count for e in ledger if ": answers" in e.id)
    answered = sum(label != "-1" for label in seen.values())
    if tests < len(seen) or answers < answered:
      sys.exit(f"trial {trial}: released more than was charged")
    final = answerer.answer(counts, first=0)
    if ledger.epsilon() > budget[0]:
      sys.exit(f"trial {trial}: overrun")
    if any(final.labels[int(q)] != int(v) for q, v in seen.items()):
      sys.exit(f"trial {trial}: another answer after the end")
    all_of_them = int(final.asked.sum())
    midway = [m for m in midway if m[0] < trial or 0 < m[1] < all_of_them]
print(len(midway))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_kill_9_never_answers_twice_nor_under_reports(tmp_path):
  done = subprocess.run(
    [sys.executable, "-c", SCRIPT, str(tmp_path), "6"], capture_output=True, text=True, check=False
  )
  assert done.returncode == 0, done.stderr
  assert int(done.stdout.split()[-1]) >= 5  # kills that came in the middle
