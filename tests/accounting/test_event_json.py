import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxfair import checks
from jaxfair.accounting import _event_json
from jaxfair.accounting import _events as ev

POSITIVE = st.floats(1e-6, 1e6)
COUNT = st.integers(1, 10**6)
RATE = st.floats(1e-9, 1.0)
LEAVES = st.one_of(
  st.builds(ev.Gaussian, POSITIVE),
  st.builds(ev.Laplace, POSITIVE),
  st.builds(ev.DpSgd, POSITIVE, RATE, COUNT),
  st.builds(ev.DpSgd, POSITIVE, RATE, COUNT, COUNT, COUNT),
  st.builds(ev.ShuffledDpSgd, POSITIVE, COUNT),
  st.builds(ev.RandomizedResponse, POSITIVE, st.integers(2, 99), COUNT),
  st.builds(ev.ZCdp, POSITIVE),
  st.builds(ev.Rdp, st.just((1.5, 2.0)), st.tuples(POSITIVE, POSITIVE)),
  st.builds(ev.PureDp, POSITIVE),
  st.builds(ev.ApproxDp, POSITIVE, RATE),
)
EVENTS = st.recursive(
  LEAVES,
  lambda inner: st.one_of(
    st.builds(ev.Composed, st.tuples(inner, inner)),
    st.builds(ev.Repeated, inner, COUNT),
    st.builds(ev.RepeatAndSelect, inner, st.floats(1.0, 100.0), st.none() | st.floats(0.0, 10.0)),
  ),
  max_leaves=4,
)


@given(EVENTS)
def test_there_and_back(event):
  written = json.dumps(_event_json.to_json(event), allow_nan=False)
  assert _event_json.from_json(json.loads(written)) == event


def test_written_form_is_stable():
  """Ledgers of older versions must stay readable."""
  event = ev.Repeated(ev.DpSgd(1.5, 0.01, 10, 1000, 40), 2)
  assert _event_json.to_json(event) == {
    "type": "repeated",
    "event": {
      "type": "dp-sgd",
      "noise_multiplier": 1.5,
      "sampling_rate": 0.01,
      "steps": 10,
      "dataset_size": 1000,
      "max_batch": 40,
    },
    "count": 2,
  }
  assert _event_json.to_json(ev.RepeatAndSelect(ev.ZCdp(0.5), 3, None)) == {
    "type": "repeat-and-select",
    "event": {"type": "zcdp", "rho": 0.5},
    "mean_runs": 3.0,
  }


@pytest.mark.parametrize(
  ("written", "told"),
  [
    (None, "object"),
    ([], "object"),
    ({}, "type"),
    ({"type": "gausian", "noise_multiplier": 1.0}, "did you mean gaussian"),
    ({"type": "gaussian"}, "noise_multiplier"),
    ({"type": "gaussian", "noise_multiplier": "1"}, "noise_multiplier"),
    ({"type": "gaussian", "noise_multiplier": None}, "noise_multiplier"),
    ({"type": "gaussian", "noise_multiplier": 1.0, "sigma": 2}, "use one of noise"),
    ({"type": "gaussian", "noise_multiplier": [1.0]}, "noise_multiplier"),
    ({"type": "dp-sgd", "noise_multiplier": 1.0}, "sampling_rate"),
    ({"type": "rdp", "orders": 2.0, "values": [1.0]}, "orders"),
    ({"type": "rdp", "orders": ["2"], "values": [1.0]}, "orders"),
    ({"type": "composed", "events": [3]}, "object"),
    ({"type": "repeated", "event": {"type": "?"}, "count": 2}, "type"),
    ({"type": {"a": 1}}, "type"),
  ],
)
def test_anything_else_is_refused(written, told):
  with pytest.raises(checks.ArgumentError, match=told):
    _event_json.from_json(written)


def test_only_events_are_written():
  with pytest.raises(checks.ArgumentError, match="Event"):
    _event_json.to_json({"type": "gaussian"})  # type: ignore[arg-type]
