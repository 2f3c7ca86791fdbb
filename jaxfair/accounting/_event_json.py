"""Events as JSON and back, strictly: what cannot be read is refused."""

import dataclasses
from typing import Any

from jaxfair import checks
from jaxfair.accounting import _events as ev


def to_json(event: ev.Event) -> dict[str, Any]:
  """The event as plain JSON values; `from_json` gives an equal event back."""
  checks.require(isinstance(event, ev.Event), f"event must be an Event, not {event!r}")
  written: dict[str, Any] = {"type": event.kind}
  for field in dataclasses.fields(event):  # type: ignore[arg-type]
    value = getattr(event, field.name)
    if isinstance(value, ev.Event):
      value = to_json(value)
    elif isinstance(value, tuple):
      value = [to_json(v) if isinstance(v, ev.Event) else v for v in value]
    if value is not None:
      written[field.name] = value
  return written


def from_json(written: object) -> ev.Event:
  """The event written by `to_json`.

  Raises:
    ArgumentError: for anything else, naming what is wrong.
  """
  return _read(written, ev.DEEPEST)


def _read(written: Any, depth: int) -> ev.Event:
  checks.require(isinstance(written, dict), f"an event must be an object, not {written!r}")
  checks.require(depth > 0, f"events are nested more than {ev.DEEPEST} deep")
  fields = dict(written)
  kind = fields.pop("type", None)
  checks.one_of("type", kind, _KINDS)
  cls = _KINDS[kind]
  known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
  for name in fields:
    checks.one_of(f"field of {kind}", name, sorted(known))
  for name, value in fields.items():
    checks.require(value is not None, f"{name} of {kind} is null; leave it out")
    if name == "event":
      fields[name] = _read(value, depth - 1)
    elif name in ("events", "orders", "values"):
      checks.require(isinstance(value, list), f"{name} of {kind} must be a list")
      if name == "events":
        value = [_read(item, depth - 1) for item in value]
      fields[name] = tuple(value)
  # Poisson is the one value that is written by being left out.
  if cls is ev.RepeatAndSelect:
    fields.setdefault("shape", None)
  try:
    return cls(**fields)
  except TypeError as error:
    raise checks.ArgumentError(f"incomplete {kind} event: {error}") from None


_KINDS: dict[Any, type[ev.Event]] = {
  cls.kind: cls
  for cls in (
    ev.Gaussian,
    ev.Laplace,
    ev.DpSgd,
    ev.ShuffledDpSgd,
    ev.RandomizedResponse,
    ev.ZCdp,
    ev.Rdp,
    ev.PureDp,
    ev.ApproxDp,
    ev.Composed,
    ev.Repeated,
    ev.RepeatAndSelect,
  )
}
