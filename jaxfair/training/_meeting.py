"""Where the processes of one command meet before they compute: one address, plain connections.

JAX's own coordination ends a process with a trace if a host is missing or late. Here every
process waits for the others with a time limit, and all of them learn in one line why they cannot
start together: somebody is missing, or was given another command or other data.
"""

import contextlib
import dataclasses
import json
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from jaxfair import checks

PATIENCE = 5.0  # seconds for a word from somebody who has connected
LONGEST = 2**20  # bytes of a word
LOCAL = ("localhost", "127.0.0.1", "::1")

Facts = Mapping[str, Mapping[str, str]]
REMEDIES = {
  "arguments": "give all hosts the same command",
  "versions": "install the same versions on all hosts",
}


class MeetingError(checks.JaxfairError):
  """Processes that cannot start together."""


@dataclasses.dataclass(frozen=True)
class Place:
  """This process among all.

  Attributes:
    index: its number, from 0 on; the first one listens.
    count: number of processes.
    address: HOST:PORT of the first.
    wait: seconds in which all must have come.
  """

  index: int
  count: int
  address: str
  wait: float

  @property
  def host_and_port(self) -> tuple[str, int]:
    """The address in two parts."""
    host, _, port = self.address.rpartition(":")
    checks.require(
      bool(host) and port.isdecimal() and 0 < int(port) < 2**16,
      f"--coordinator {self.address}: name host 1 and a free port of it, such as node1:5000",
    )
    return host.strip("[]"), int(port)

  def named(self, index: int) -> str:
    """What a process is called on the command line: 1/2."""
    return f"{index + 1}/{self.count}"


class Link:
  """A connection to another process, over which lines of JSON travel."""

  def __init__(self, connection: socket.socket):
    self.connection, self._held = connection, b""

  def send(self, word: Mapping[str, Any]) -> None:
    """Sends one word; it is lost where nobody listens any more."""
    with contextlib.suppress(OSError):
      self.connection.sendall(json.dumps(word).encode() + b"\n")

  def words(self) -> list[dict[str, Any]] | None:
    """The words that have come, after waiting for some bytes; None if the other side has left."""
    try:
      found = self.connection.recv(2**16)
    except OSError:
      found = b""
    if not found:
      return None
    *lines, self._held = (self._held + found).split(b"\n")
    return [json.loads(line) for line in lines]

  def word(self, seconds: float | None) -> dict[str, Any]:
    """The next word, where one is expected.

    Raises:
      MeetingError: if none comes in time.
    """
    self.connection.settimeout(seconds)
    found = b""
    with contextlib.suppress(OSError):
      while len(found) < LONGEST and (byte := self.connection.recv(1)) not in (b"", b"\n"):
        found += byte  # no further: what follows is for `words`
    self.connection.settimeout(None)
    try:
      told = json.loads(found)
    except ValueError:
      told = None
    if not isinstance(told, dict):
      raise MeetingError("the connection was closed")
    return told


def meet(place: Place, describe: Callable[[bytes], Facts]) -> list[Link]:
  """Waits for all processes and compares what they are about to do.

  Args:
    place: which of them this is.
    describe: what must be the same everywhere, by kind and name. It is called when all have come,
      with a secret that they share: data are compared by digests under it, which tell nothing to
      those who do not know it.

  Returns:
    Connections to all others in the first process, and to the first one elsewhere.

  Raises:
    MeetingError: in all processes, with the same line, if they cannot start together.
  """
  with contextlib.ExitStack() as stack:
    found = (_gathered if place.index == 0 else _joined)(place, describe, stack)
    stack.pop_all()  # they stay open
  return found


def _joined(
  place: Place, describe: Callable[[bytes], Facts], stack: contextlib.ExitStack
) -> list[Link]:
  link = Link(stack.enter_context(_connected(place)))
  link.send({"host": place.index, "count": place.count})
  gone = f"host {place.named(0)} has ended; its own line says why"
  try:
    told = link.word(place.wait + PATIENCE)
    if "refused" not in told:
      link.send(_described(describe, told["secret"]))
      told = link.word(None)
  except MeetingError:
    raise MeetingError(gone) from None
  if told["refused"]:
    raise MeetingError(told["refused"])
  return [link]


def _gathered(
  place: Place, describe: Callable[[bytes], Facts], stack: contextlib.ExitStack
) -> list[Link]:
  links: dict[int, Link] = {}
  refused = _arrivals(place, links, stack)
  if not refused:
    secret = secrets.token_hex(16)
    for link in links.values():
      link.send({"secret": secret})
    found = {0: _described(describe, secret)}
    for index, link in links.items():
      try:
        found[index] = link.word(None)
      except MeetingError:
        found[index] = {"error": "it has ended"}
    refused = _difference(place, found)
  for link in links.values():
    link.send({"refused": refused})
  if refused:
    raise MeetingError(refused)
  return list(links.values())


def _arrivals(place: Place, links: dict[int, Link], stack: contextlib.ExitStack) -> str:
  """Fills `links`; says who did not come, or came twice."""
  end = time.monotonic() + place.wait
  with _server(place) as server:
    while len(links) < place.count - 1:
      server.settimeout(max(0.01, end - time.monotonic()))
      try:
        link = Link(stack.enter_context(server.accept()[0]))
      except TimeoutError:
        missing = [index for index in range(1, place.count) if index not in links]
        told = ", ".join(place.named(index) for index in missing)
        return (
          f"host {told} did not come to {place.address} within {place.wait:g} seconds; start the "
          f"same command there, with --host {place.named(missing[0])}"
        )
      try:
        came = link.word(PATIENCE)
        index, count = int(came["host"]), int(came["count"])
      except (MeetingError, KeyError, TypeError, ValueError):
        link.connection.close()  # not one of us
        continue
      taken = index in links or not 0 < index < place.count
      links[-len(links) - 1 if taken else index] = link
      if count != place.count or taken:
        return (
          f"a host came as {index + 1}/{count}, and this group has {place.count} hosts, each with "
          f"a number of its own: --host {place.named(0)} to {place.named(place.count - 1)}"
        )
  return ""


def _server(place: Place) -> socket.socket:
  host, port = place.host_and_port
  try:
    if host in LOCAL or not socket.has_dualstack_ipv6():
      return socket.create_server((host if host in LOCAL else "", port))
    return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
  except OSError as error:
    raise MeetingError(
      f"--coordinator {place.address}: cannot listen there ({error.strerror}); name this host, "
      f"which is {place.named(0)}, and a free port of it"
    ) from None


def _connected(place: Place) -> socket.socket:
  end, why = time.monotonic() + place.wait, ""
  while (left := end - time.monotonic()) > 0:
    try:
      return socket.create_connection(place.host_and_port, timeout=min(PATIENCE, left))
    except OSError as error:
      why = str(error.strerror or error)
      time.sleep(min(0.2, left))
  raise MeetingError(
    f"no answer from {place.address} within {place.wait:g} seconds ({why}); start the same "
    f"command there with --host {place.named(0)}, or mend --coordinator"
  )


def _described(describe: Callable[[bytes], Facts], secret: str) -> dict[str, Any]:
  """The facts, or the mistake that shows in finding them."""
  try:
    return {"facts": describe(bytes.fromhex(secret))}
  except (checks.JaxfairError, OSError) as error:
    return {"error": " ".join(str(error).split())}


def _difference(place: Place, found: Mapping[int, dict[str, Any]]) -> str:
  """The first thing in which a process differs from the first one."""
  for index, told in sorted(found.items()):
    if "error" in told:
      return f"host {place.named(index)}: {told['error']}"
  own = found[0]["facts"]
  for index, told in sorted(found.items()):
    for kind, facts in told["facts"].items():
      for name in {**own[kind], **facts}:
        mine, other = own[kind].get(name, "missing"), facts.get(name, "missing")
        if mine != other and kind in REMEDIES:
          return (
            f"{name} is {mine} on host {place.named(0)} and {other} on host {place.named(index)}; "
            f"{REMEDIES[kind]}"
          )
        if mine != other:
          return (
            f"{name} holds other data on host {place.named(index)} than on host {place.named(0)}; "
            "copy one of them to all hosts"
          )
  return ""
