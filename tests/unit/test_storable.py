"""What the writer refuses before it writes anything, and whom it names."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_core.encodings.version import FileVersion
from lance_core.errors import InvalidRequestError, LanceError, UnsupportedFeatureError
from lance_core.file.storable import check_storable
from lance_core.ids import FieldId
from lance_core.schema.field import LanceField
from lance_core.schema.from_arrow import schema_from_arrow

BLOB = {"lance-encoding:blob": "true"}
MAP = pa.map_(pa.string(), pa.int8())


def check(field: pa.Field, version: str = "2.2", path: str = "a.lance") -> None:
    (tree,) = schema_from_arrow(pa.schema([field])).fields
    check_storable(tree, path, FileVersion(version))


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_maps_need_the_newest_version(version: str) -> None:
    check(pa.field("c", MAP))
    with pytest.raises(UnsupportedFeatureError, match=r"'c'.*'m'.*maps need file version 2\.2"):
        check(pa.field("c", pa.struct({"m": MAP})), version)


def test_fixed_size_lists_of_structs_are_refused() -> None:
    inner = LanceField(FieldId(1), "item", "struct", nullable=True)
    field = LanceField(
        FieldId(0), "c", "fixed_size_list:struct:3", nullable=True, children=(inner,)
    )
    with pytest.raises(UnsupportedFeatureError, match=r"column 'c'.*fixed-size lists of structs"):
        check_storable(field, "a.lance", FileVersion.V2_2)


def test_an_unknown_type_is_refused() -> None:
    field = LanceField(FieldId(0), "c", "interval", nullable=True)
    with pytest.raises(UnsupportedFeatureError, match="column 'c'"):
        check_storable(field, "a.lance", FileVersion.V2_2)


def test_metadata_that_asks_for_nothing_known_is_refused() -> None:
    metadata = {"lance-encoding:compression": "zip"}
    with pytest.raises(InvalidRequestError, match="column 'c' is 'zip'"):
        check(pa.field("c", pa.int8(), metadata=metadata))


@pytest.mark.parametrize(
    ("field", "version", "path", "error"),
    [
        (pa.field("c", pa.binary(), metadata=BLOB), "2.2", "a.lance", "are large_binary"),
        (
            pa.field("c", pa.struct([pa.field("b", pa.large_binary(), metadata=BLOB)])),
            "2.2",
            "a.lance",
            "'b': blobs inside other columns",
        ),
        (pa.field("c", pa.large_binary(), metadata=BLOB), "2.2", "a", "end in .lance"),
        (
            pa.field(
                "c",
                pa.struct({"data": pa.large_binary(), "uri": pa.string()}),
                metadata={"ARROW:extension:name": "lance.blob.v2"},
            ),
            "2.1",
            "a.lance",
            "needs file version 2.2",
        ),
    ],
    ids=["type", "nested", "file name", "version"],
)
def test_blobs_that_have_no_place_are_refused(
    field: pa.Field, version: str, path: str, error: str
) -> None:
    with pytest.raises(LanceError, match=error):
        check(field, version, path)
