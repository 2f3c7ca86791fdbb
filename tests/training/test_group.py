"""A group of processes that is held together by its connections."""

import os
import socket
import subprocess
import sys

import pytest

from jaxfair.training import _group, _meeting

ALONE = """
import socket, sys, time
from jaxfair.training import _group, _meeting
own, other = socket.socketpair()
group = _group.Group(_meeting.Place(%d, 2, "localhost:1", 1.0), [_meeting.Link(own)])
group.continues("out")
%s
time.sleep(20)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
  ("index", "ends", "line"),
  [
    (
      0,
      "other.close()",
      "another process of this run has ended; start all hosts again with the same command, which "
      "continues out",
    ),
    (1, """_meeting.Link(other).send({"error": "host 1/2: the disk is full"})""", "host 1/2: the"),
  ],
)
def test_a_process_whose_peer_ends_says_one_line(index, ends, line):
  done = subprocess.run(
    [sys.executable, "-c", ALONE % (index, ends)],
    capture_output=True,
    text=True,
    check=False,
    timeout=60,
    env=os.environ,
  )
  assert done.returncode == 2
  assert done.stdout == ""
  (told,) = done.stderr.splitlines()
  assert told.startswith(f"jaxfair: {line}")


def test_the_first_process_is_heard_until_it_says_good_bye():
  ends = socket.socketpair()
  first, second = (
    _group.Group(_meeting.Place(index, 2, "localhost:1", 1.0), [_meeting.Link(end)])
    for index, end in enumerate(ends)
  )
  assert first.broadcast(b"from the first") == second.broadcast(b"") == b"from the first"
  first.tell([1, 2])
  assert second.hear() == [1, 2]
  for group in (first, second):
    group._links[0].send({"bye": True})
  assert second.hear() is None
  assert first._well.wait(5)
  assert second._well.wait(5)
  for end in ends:  # after the good-bye nobody misses the other
    end.shutdown(socket.SHUT_RDWR)
  assert first._gone.wait(5)
  assert second._gone.wait(5)
  for end in ends:
    end.close()
