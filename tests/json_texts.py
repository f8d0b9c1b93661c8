"""Random JSON texts."""

from __future__ import annotations

import json

from hypothesis import strategies as st

doubles = st.floats(allow_nan=False, allow_infinity=False)
integers = st.integers(-(2**70), 2**70) | st.integers(-300, 300)
scalars = st.none() | st.booleans() | integers | doubles | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=20,
)
texts = st.builds(json.dumps, values, ensure_ascii=st.booleans(), indent=st.sampled_from([None, 1]))
