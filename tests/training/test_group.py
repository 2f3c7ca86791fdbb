"""A group of processes that is held together by its connections."""

import contextlib
import queue
import socket

import pytest

from jaxfair.training import _group
from jaxfair.training._meeting import Link, Place


@pytest.fixture
def groups(monkeypatch):
  """`groups(index, count)` is a group with the other ends of its links; its exits are queued."""
  exits, made, ends = queue.Queue(), [], []
  monkeypatch.setattr(_group.os, "_exit", exits.put)

  def make(index, links):
    pairs = [socket.socketpair() for _ in range(links)]
    ends.extend(end for pair in pairs for end in pair)
    place = Place(index, 3, "localhost:1", 1.0)
    made.append(_group.Group(place, [Link(own) for own, _ in pairs]))
    return made[-1], [Link(other) for _, other in pairs], exits

  yield make
  for end in ends:
    with contextlib.suppress(OSError):
      end.shutdown(socket.SHUT_RDWR)
  assert all(group._gone.wait(5) for group in made)
  for end in ends:
    end.close()


LOST = "another process of this run has ended; start all hosts again with the same command"


def test_a_process_that_loses_the_first_one_says_one_line(groups, capfd):
  group, (first,), exits = groups(1, 1)
  group.continues("out")
  first.connection.close()
  assert exits.get(timeout=5) == 2
  assert capfd.readouterr() == ("", f"jaxfair: {LOST}, which continues out\n")


def test_a_process_that_is_told_an_error_says_it(groups, capfd):
  _, (first,), exits = groups(1, 1)
  first.send({"error": "host 1/3: the disk is full"})
  assert exits.get(timeout=5) == 2
  assert capfd.readouterr() == ("", "jaxfair: host 1/3: the disk is full\n")


@pytest.mark.parametrize("killed", [False, True])
def test_the_first_process_passes_an_error_on_and_ends_last(groups, capfd, tmp_path, killed):
  """Without it JAX would end the others with a trace of its own."""
  group, (second, third), exits = groups(0, 2)
  group.mark = tmp_path / "mark"
  group.mark.touch()
  line = LOST
  if not killed:
    line = "host 2/3: the file is gone"
    second.send({"error": line})
  second.connection.close()
  assert third.word(5.0) == {"error": line}
  assert exits.empty()
  third.connection.close()
  assert exits.get(timeout=5) == 2
  assert capfd.readouterr() == ("", f"jaxfair: {line}\n")
  assert not group.mark.exists()


def test_a_process_that_fails_tells_the_others_and_says_nothing_itself(groups, capfd):
  group, (first,), exits = groups(1, 1)
  group.fail("the file is gone")
  assert first.word(5.0) == {"error": "host 2/3: the file is gone"}
  first.connection.close()
  assert group._gone.wait(5)
  assert exits.empty()
  assert capfd.readouterr() == ("", "")


def test_the_first_process_is_heard_until_it_says_good_bye(groups):
  group, (first,), exits = groups(1, 1)
  first.send({"value": "from the first"})
  first.send({"value": [1, 2]})
  assert group.broadcast(b"own") == b"from the first"
  assert group.hear() == [1, 2]
  first.send({"bye": True})
  assert group.hear() is None
  assert group._well.wait(5)
  first.connection.close()  # after the good-bye nobody misses it
  assert group._gone.wait(5)
  assert exits.empty()
  leader, others, _ = groups(0, 2)
  assert leader.broadcast(b"to all") == b"to all"
  assert [link.word(5.0) for link in others] == 2 * [{"value": "to all"}]
  others[0].send({"bye": True})
  assert not leader._well.wait(0.05)
  others[1].send({"bye": True})
  assert leader._well.wait(5)
