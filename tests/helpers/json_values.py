"""Any JSON value, and every place inside one, for tests of parsers."""

from hypothesis import strategies as st

JSON = st.recursive(
  st.none()
  | st.booleans()
  | st.integers()
  | st.sampled_from([10**400, -(2**63), 2**53 + 1, 1e308, 5e-324, -0.0])
  | st.floats(allow_nan=False, allow_infinity=False)
  | st.text(max_size=5),
  lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
  ),
  max_leaves=4,
)


def places(value, path=()):
  """Every place inside a JSON value."""
  yield path
  if isinstance(value, dict | list):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in items:
      yield from places(inner, (*path, name))
