"""How a process ends when another one of its run does."""

import socket
import threading

import jax
import pytest

from jaxfair.training import _hosts, _peers


@pytest.fixture
def two(monkeypatch):
  """A process of two; the connection of the other one, and what the process was ended with."""
  mine, other = socket.socketpair()
  ended, done = [], threading.Event()

  def end(code):
    ended.append(code)
    done.set()

  monkeypatch.setattr(jax, "process_count", lambda: 2)
  monkeypatch.setattr(_peers, "_connected", lambda: [mine])
  monkeypatch.setattr(_peers.os, "_exit", end)
  monkeypatch.setattr(_peers, "GRACE", 0.2)
  with mine, other:
    yield other, ended, done


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("told", [b"", _peers.ERROR])
def test_a_lost_process_is_one_line(two, monkeypatch, capfd, first, told):
  other, ended, done = two
  monkeypatch.setattr(_hosts, "is_first", lambda: first)
  with _peers.watched("start again"):
    other.sendall(told)
    other.close()
    assert done.wait(5)
  assert set(ended) == {1}
  assert capfd.readouterr().err.startswith("another process of this run has ended; start again\n")


def test_who_leaves_in_peace_or_in_time_ends_nobody(two):
  other, ended, done = two
  with _peers.watched("start again"):
    other.sendall(_peers.BYE)
    other.close()
    assert not done.wait(0.3)
  assert not ended


def test_an_error_of_its_own_is_raised_and_told(two, monkeypatch):
  monkeypatch.setattr(_hosts, "is_first", lambda: True)
  other, ended, _ = two
  with pytest.raises(ValueError, match="no disk"), _peers.watched("start again"):
    raise ValueError("no disk")
  assert other.recv(1) == _peers.ERROR
  assert not ended


def test_a_stranger_is_not_taken_for_a_process(monkeypatch):
  monkeypatch.setattr(jax, "process_count", lambda: 2)
  token = b"0123456789abcdef"
  with socket.create_server(("localhost", 0)) as server:
    address = server.getsockname()
    with socket.create_connection(address) as stranger, socket.create_connection(address) as own:
      stranger.sendall(b"f" * 16)
      own.sendall(token)
      (link,) = _peers._accepted(server, token)
      assert link.getpeername() == own.getsockname()
      link.close()
