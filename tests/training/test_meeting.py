"""Processes that meet before they compute: all start, or all are told the same line."""

import concurrent.futures
import socket

import pytest

from jaxfair import checks
from jaxfair.training import _meeting
from jaxfair.training._meeting import MeetingError, Place


def free_port():
  with socket.socket() as free:
    free.bind(("localhost", 0))
    return free.getsockname()[1]


def facts(epsilon="1.0", jax="0.9", data="people"):
  def describe(secret):
    return {
      "versions": {"jax": jax},
      "arguments": {"--epsilon": epsilon},
      "data": {"people.csv": f"{secret.hex()} {data}"},
    }

  return describe


def meeting(*described, places=None, wait=5.0):
  """What every process returns or raises."""
  address, count = f"localhost:{free_port()}", len(described)
  places = places or [(index, count) for index in range(count)]

  def one(index, count, describe):
    try:
      return _meeting.meet(Place(index, count, address, wait), describe)
    except checks.JaxfairError as error:
      return str(error)

  with concurrent.futures.ThreadPoolExecutor(count) as pool:
    started = [pool.submit(one, *place, d) for place, d in zip(places, described, strict=True)]
    return [process.result() for process in started]


def test_processes_that_agree_are_connected_through_the_first():
  first, *others = meeting(facts(), facts(), facts())
  assert [len(links) for links in (first, *others)] == [2, 1, 1]
  for link in first:
    link.send({"value": 7})
  assert [links[0].words() for links in others] == 2 * [[{"value": 7}]]
  for link in (*first, *(links[0] for links in others)):
    link.connection.close()


@pytest.mark.parametrize(
  ("other", "line"),
  [
    (
      facts(epsilon="2.0"),
      "--epsilon is 1.0 on host 1/3 and 2.0 on host 3/3; give all hosts the same command",
    ),
    (
      facts(jax="0.8"),
      "jax is 0.9 on host 1/3 and 0.8 on host 3/3; install the same versions on all hosts",
    ),
    (
      facts(data="others"),
      "people.csv holds other data on host 3/3 than on host 1/3; copy one of them to all hosts",
    ),
  ],
)
def test_a_process_that_differs_ends_all_with_one_line(other, line):
  assert meeting(facts(), facts(), other) == 3 * [line]


@pytest.mark.parametrize("index", [0, 1])
def test_a_mistake_that_shows_on_one_host_is_told_on_all(index):
  def broken(secret):
    raise FileNotFoundError(2, "No such file", "people.csv")

  found = meeting(*(broken if i == index else facts() for i in range(2)))
  assert found == 2 * [f"host {index + 1}/2: [Errno 2] No such file: 'people.csv'"]


def test_a_process_that_does_not_come_is_named_to_all():
  found = meeting(facts(), facts(), places=[(0, 3), (2, 3)], wait=0.3)
  assert len(set(found)) == 1
  assert found[0].startswith("host 2/3 did not come to localhost:")
  assert found[0].endswith("within 0.3 seconds; start the same command there, with --host 2/3")


@pytest.mark.parametrize(
  ("places", "line"),
  [
    ([(0, 2), (1, 3)], "a host came as 2/3, and this group has 2 hosts"),
    ([(0, 3), (1, 3), (1, 3)], "a host came as 2/3, and this group has 3 hosts, each with a"),
  ],
)
def test_wrong_numbers_are_told_to_all(places, line):
  found = meeting(*(facts() for _ in places), places=places)
  assert all(told.startswith(line) for told in found), found


def test_a_coordinator_that_does_not_answer():
  (told,) = meeting(facts(), places=[(1, 2)], wait=0.3)
  assert "within 0.3 seconds (Connection refused); start the same command there" in told
  assert told.endswith("with --host 1/2, or mend --coordinator")


def test_an_address_that_is_taken_or_wrong():
  with socket.create_server(("localhost", 0)) as taken:
    address = f"localhost:{taken.getsockname()[1]}"
    with pytest.raises(MeetingError, match=r"cannot listen there .*name this host, which is 1/2"):
      _meeting.meet(Place(0, 2, address, 1.0), facts())
  for wrong in ("localhost", "localhost:", "localhost:port", ":5000", "localhost:70000"):
    with pytest.raises(checks.ArgumentError, match="name host 1 and a free port of it"):
      _meeting.meet(Place(0, 2, wrong, 1.0), facts())


def test_strangers_are_ignored():
  port = free_port()
  place = Place(0, 2, f"localhost:{port}", 5.0)
  with concurrent.futures.ThreadPoolExecutor(1) as pool:
    first = pool.submit(_meeting.meet, place, facts())
    while True:
      try:
        with socket.create_connection(("localhost", port)) as stranger:
          stranger.sendall(b"GET / HTTP/1.1\n")
        break
      except OSError:
        continue
    (link,) = _meeting.meet(Place(1, 2, place.address, 5.0), facts())
    (back,) = first.result()
  link.connection.close()
  back.connection.close()
