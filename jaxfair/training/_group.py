"""One command on several hosts: they meet, compute together, and end together.

The connections of the meeting stay open. What the first process tells the others travels over
them (however long they wait for it), and they show at once that a process has ended: the operating
system closes the connections of a process, however it ends.
"""

import atexit
import contextlib
import os
import pathlib
import queue
import selectors
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jaxfair import checks
from jaxfair.training import _hosts, _meeting
from jaxfair.training._meeting import Facts, Link, Place

LAST = 5.0  # seconds for the others to end after an error, before this process does
INITIALIZED = 60  # seconds for JAX to connect processes that have met


class Group:
  """The processes of one command; see `together`.

  Attributes:
    place: which of them this is.
    mark: a file that the first process removes, however the command ends; None for none.
  """

  def __init__(self, place: Place, links: list[Link]):
    self.place = place
    self.mark: pathlib.Path | None = None
    self._links = links
    self._finished: set[Link] = set()
    self._heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
    self._lock = threading.Lock()
    self._remedy = "start all hosts again with the same command"
    self._leaving = False
    self._well, self._gone = threading.Event(), threading.Event()
    threading.Thread(target=self._listen, daemon=True).start()

  @property
  def is_first(self) -> bool:
    """Whether this process writes and prints."""
    return self.place.index == 0

  def tell(self, value: object) -> None:
    """Sends a JSON value from the first process to all others, who `hear` it."""
    for link in self._links:
      link.send({"value": value})

  def hear(self) -> Any:
    """The next value that the first process tells; None if it has finished."""
    return self._heard.get()

  def continues(self, folder: object) -> None:
    """Names what the same command continues, for the line that a lost process leaves."""
    self._remedy = f"start all hosts again with the same command, which continues {folder}"

  def broadcast(self, message: bytes) -> bytes:
    """The first process's message, in all of them."""
    if self.is_first:
      self.tell(message.decode())
      return message
    return str(self.hear()).encode()

  def finish(self) -> None:
    """Waits until all have finished; nobody leaves JAX's coordination before."""
    import jax

    for link in self._links:
      link.send({"bye": True})
    self._well.wait()
    with self._lock:
      self._leaving = True
    jax.distributed.shutdown()

  def fail(self, line: str) -> None:
    """Tells the others why this process ends.

    The first process lets them end first: JAX would end them with a trace of its own without it.
    """
    with self._lock:
      self._leaving = True
    told = f"host {self.place.named(self.place.index)}: {line}"
    for link in self._links:
      link.send({"error": told})
    if self.is_first:
      self._gone.wait(LAST)
    self._clean()

  def _listen(self) -> None:
    here = len(self._links)
    with selectors.DefaultSelector() as selector:
      for link in self._links:
        selector.register(link.connection, selectors.EVENT_READ, link)
      while here:
        for key, _ in selector.select():
          link = key.data
          words = link.words()
          if words is None:
            selector.unregister(key.fileobj)
            here -= 1
            if link not in self._finished:
              self._end(f"another process of this run has ended; {self._remedy}")
          for word in words or ():
            if "error" in word:
              self._end(word["error"])
            elif "bye" in word:
              self._finished.add(link)
              self._heard.put(None)
            else:
              self._heard.put(word["value"])
          if len(self._finished) == len(self._links):
            self._well.set()
    self._gone.set()

  def _end(self, line: str) -> None:
    """Ends this process with one line, and the others by passing it on."""
    with self._lock:
      if self._leaving:
        return
      self._leaving = True
    sys.stdout.flush()
    print(f"jaxfair: {line}", file=sys.stderr, flush=True)
    if self.is_first:
      for link in self._links:
        link.send({"error": line})
      for link in self._links:
        link.connection.settimeout(LAST)
        while link.words() is not None:
          pass
    self._clean()
    os._exit(2)

  def _clean(self) -> None:
    if self.mark is not None:
      with contextlib.suppress(OSError):
        self.mark.unlink()


@contextlib.contextmanager
def together(
  place: Place, describe: Callable[[bytes], Facts], devices: Sequence[int] | None = None
) -> Iterator[Group]:
  """Meets the other processes and joins JAX's distributed runtime with them.

  Args:
    place: which of them this is.
    describe: what must be the same everywhere; see `meet`.
    devices: ids of the accelerators that this process may use; None for all.
  """
  group = Group(place, _meeting.meet(place, describe))
  try:
    _initialize(place, devices)
    _hosts.CHANNEL = group.broadcast
    yield group
    group.finish()
  except BaseException as error:
    stopped = isinstance(error, KeyboardInterrupt)
    known = isinstance(error, checks.JaxfairError | OSError)
    line = "it was stopped" if stopped else " ".join(str(error).split())
    group.fail(line if known or stopped else f"{type(error).__name__}: {line}")
    atexit.register(_leave)  # before JAX's own good-byes, which nobody answers
    raise
  finally:
    _hosts.CHANNEL = None


def _initialize(place: Place, devices: Sequence[int] | None) -> None:
  import jax

  _quiet_collectives()
  jax.config.update("jax_cpu_collectives_implementation", "gloo")  # where devices are CPUs
  host, _ = place.host_and_port
  jax.distributed.initialize(
    place.address,
    place.count,
    place.index,
    None if devices is None else list(devices),
    cluster_detection_method="deactivate",
    initialization_timeout=INITIALIZED,
    coordinator_bind_address=place.address if host in _meeting.LOCAL else None,
  )


def _quiet_collectives() -> None:
  """Moves Python's output to a copy of the descriptor, for gloo prints on the first one."""
  sys.stdout.flush()
  own = os.dup(1)
  nowhere = os.open(os.devnull, os.O_WRONLY)
  os.dup2(nowhere, 1)
  os.close(nowhere)
  sys.stdout = open(own, "w", 1, encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115


def _leave() -> None:
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(2)
