"""Code in processes of its own: with several devices, or several at once."""

import json
import os
import socket
import subprocess
import sys


def on_devices(code, count=8, *, flags=""):
  """Runs code in a process with so many devices; returns what it prints.

  It is compiled as for users, not as tests/conftest.py does it, unless `flags` say otherwise.
  """
  return _result(_start(code, count, flags))


def together(code, count=2, *, flags=""):
  """Runs code in processes that know each other; what each of them prints.

  The code begins with `jax.distributed.initialize(*sys.argv[1:])` in its own
  words: the address, the number of processes and the process's own number.
  """
  with socket.socket() as free:
    free.bind(("localhost", 0))
    address = f"localhost:{free.getsockname()[1]}"
  started = [_start(code, 1, flags, address, str(count), str(i)) for i in range(count)]
  try:
    return [_result(process) for process in started]
  finally:  # one that failed leaves the others waiting for it
    for process in started:
      process.kill()
      process.communicate()


def _start(code, devices, flags, *arguments):
  flags = f"--xla_force_host_platform_device_count={devices} {flags}"
  return subprocess.Popen(
    [sys.executable, "-W", "error", "-c", code, *arguments],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    env=os.environ | {"XLA_FLAGS": flags},
  )


def _result(process):
  out, error = process.communicate(timeout=300)
  assert process.returncode == 0, error
  return json.loads(out.splitlines()[-1])
