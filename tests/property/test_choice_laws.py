"""Whatever is chosen for a page gives back its values."""

from __future__ import annotations

from hypothesis import given, strategies as st

from lance_core.encodings.choose import choose_values, chunk_bounds
from lance_core.encodings.hints import Hints
from lance_core.encodings.version import FileVersion
from lance_core.ids import FieldId
from lance_core.schema.field import LanceField
from tests.encoded_values import plain, strings_of, through_chunks, through_zipped


def leaf(logical_type: str) -> LanceField:
    return LanceField(FieldId(0), "x", logical_type, nullable=True)


@given(items=st.lists(st.binary(max_size=600), min_size=1, max_size=60))
def test_chosen_strings_survive(items: list[bytes]) -> None:
    values = strings_of(items)
    for zipped in (None, True, False):
        choice = choose_values(values, leaf("string"), Hints(), FileVersion.V2_2, zipped=zipped)
        if choice.zipped:
            decoded = through_zipped(choice.encoding, choice.values)
        else:
            decoded = through_chunks(choice.encoding, choice.values, chunk_bounds(choice))
        assert plain(decoded) == items
