"""Notices that another process of a run has ended, by a connection that closes with it.

A collective that waits for a process that is gone may wait for minutes, until the runtime's
heartbeats stop and it aborts with a trace of its own. The operating system closes the connections
of a process at once, however it ends. All processes are connected to the first one; if one of them
is lost, the first ends, and with it the others.
"""

import contextlib
import hmac
import os
import secrets
import selectors
import socket
import sys
import threading
from collections.abc import Iterator

import jax

from jaxfair.training import _hosts

GRACE = 10.0  # seconds in which the process may end by an error of its own
PATIENCE = 10.0  # seconds for a connection; without one, nothing is watched
BYE, ERROR = b".", b"!"  # how a process says that it leaves


@contextlib.contextmanager
def watched(remedy: str) -> Iterator[None]:
  """Ends this process with one line if another one ends before it has left the context.

  Args:
    remedy: what to do then.
  """
  if jax.process_count() == 1 or _hosts.CHANNEL is not None:  # a group watches itself
    yield
    return
  links, left, well = _connected(), threading.Event(), False
  line = f"another process of this run has ended; {remedy}"
  thread = threading.Thread(target=_watch, args=(links, left, line), daemon=True)
  thread.start()
  try:
    yield
    well = True
  finally:
    left.set()
    thread.join()
    for link in links:
      with link, contextlib.suppress(OSError):
        link.sendall(BYE if well else ERROR)


def _watch(links: list[socket.socket], left: threading.Event, line: str) -> None:
  with selectors.DefaultSelector() as selector:
    for link in links:
      selector.register(link, selectors.EVENT_READ)
    while selector.get_map() and not left.is_set():
      for key, _ in selector.select(timeout=0.1):
        try:
          told = os.read(key.fd, 1)
        except OSError:
          told = b""
        if told == BYE:
          selector.unregister(key.fileobj)
          continue
        # Without the first process the runtime aborts at once, unless this is quicker.
        killed = told != ERROR and not _hosts.is_first()
        if not left.wait(0.0 if killed else GRACE):
          sys.stdout.flush()
          print(line, file=sys.stderr, flush=True)
          os._exit(1)
        return


def _connected() -> list[socket.socket]:
  """Connections to all other processes in the first one, and to the first one elsewhere."""
  with contextlib.ExitStack() as stack:
    server: list[socket.socket] = []

    def listen() -> list[str | int]:
      server.append(stack.enter_context(socket.create_server(("", 0))))
      return [socket.gethostname(), server[0].getsockname()[1], secrets.token_hex(16)]

    host, port, token = _hosts.from_first(listen)
    if server:
      return _accepted(server[0], token.encode())
    with contextlib.suppress(OSError):
      link = socket.create_connection((host, port), timeout=PATIENCE)
      link.sendall(token.encode())
      link.settimeout(None)
      return [link]
  return []


def _accepted(server: socket.socket, token: bytes) -> list[socket.socket]:
  """The connections of the other processes, which know the token."""
  links: list[socket.socket] = []
  server.settimeout(PATIENCE)
  with contextlib.suppress(OSError):
    while len(links) < jax.process_count() - 1:
      link, _ = server.accept()
      link.settimeout(PATIENCE)
      if hmac.compare_digest(link.recv(len(token), socket.MSG_WAITALL), token):
        link.settimeout(None)
        links.append(link)
      else:
        link.close()
  return links
