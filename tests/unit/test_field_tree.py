"""The field tree: built from the flat list of a file, searched by path and id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lance_core.encodings.version import FileVersion
from lance_core.errors import CorruptFileError, UnknownColumnError
from lance_core.file.columns import column_indices
from lance_core.ids import FieldId
from lance_core.proto import file_pb2
from lance_core.schema.from_proto import schema_from_messages

if TYPE_CHECKING:
    from lance_core.schema.tree import LanceSchema


def message(
    number: int, name: str, parent: int = -1, kind: str = "int32", **metadata: bytes
) -> file_pb2.Field:
    return file_pb2.Field(
        id=number, name=name, parent_id=parent, logical_type=kind, metadata=metadata
    )


def tree(*messages: file_pb2.Field) -> LanceSchema:
    return schema_from_messages(messages, {}, path="file.lance")


EXAMPLE = (
    message(0, "a"),
    message(1, "s", kind="struct"),
    message(2, "x", 1),
    message(3, "l", 1, kind="list"),
    message(4, "item", 3, kind="double"),
    message(5, "ls", kind="list.struct"),
    message(6, "item", 5, kind="struct"),
    message(7, "p", 6),
    message(8, "q", 6),
    message(9, "v", kind="fixed_size_list:float:4"),
)


def test_children_stand_below_their_parents() -> None:
    schema = tree(*EXAMPLE)
    assert schema.names == ("a", "s", "ls", "v")
    assert [field.id for field in schema.walk()] == list(range(10))
    assert schema.field("s.l.item").logical_type == "double"
    assert schema.by_id(FieldId(8)).name == "q"


def test_leaves_own_the_columns_of_2_1_files() -> None:
    assert column_indices(tree(*EXAMPLE), FileVersion.V2_1) == {
        0: 0, 2: 1, 4: 2, 7: 3, 8: 4, 9: 5
    }  # fmt: skip


def test_every_node_owns_a_column_in_2_0_files() -> None:
    found = column_indices(tree(*EXAMPLE), FileVersion.V2_0)
    assert found == {number: number for number in range(10)}


def test_a_packed_struct_owns_one_column() -> None:
    packed = message(0, "s", kind="struct")
    packed.metadata["lance-encoding:packed"] = b"true"
    schema = tree(packed, message(1, "x", 0), message(2, "y"))
    for version in FileVersion:
        assert column_indices(schema, version) == {0: 0, 2: 1}


def test_blob_descriptor_children_without_ids_belong_to_the_struct_before() -> None:
    blob = message(0, "b", kind="struct")
    blob.metadata["lance-encoding:blob"] = b"true"
    schema = tree(blob, message(-1, "kind"), message(-1, "position"), message(1, "y"))
    assert schema.names == ("b", "y")
    assert [child.name for child in schema.field("b").children] == ["kind", "position"]


def test_a_name_with_a_dot_is_found_before_a_path() -> None:
    schema = tree(message(0, "a.b"), message(1, "a", kind="struct"), message(2, "b", 1))
    assert schema.field("a.b").id == 0


def test_an_extension_name_alone_becomes_metadata() -> None:
    named = message(0, "a")
    named.extension_name = "arrow.uuid"
    assert tree(named).field("a").metadata == {"ARROW:extension:name": "arrow.uuid"}


def test_an_unknown_path_names_the_columns_that_exist() -> None:
    with pytest.raises(UnknownColumnError, match=r"s\.z.*a, s, ls, v"):
        tree(*EXAMPLE).field("s.z")
    with pytest.raises(UnknownColumnError):
        tree(*EXAMPLE).by_id(FieldId(99))


@pytest.mark.parametrize(
    "messages",
    [
        (message(0, "a"), message(0, "b")),
        (message(1, "a", 0), message(0, "b")),
        tuple(message(i, "a", i - 1) for i in range(100)),
    ],
    ids=["an id twice", "a child before its parent", "too deep"],
)
def test_a_tree_that_cannot_be_is_corrupt(messages: tuple[file_pb2.Field, ...]) -> None:
    with pytest.raises(CorruptFileError):
        tree(*messages)


def test_metadata_that_is_not_text_is_corrupt() -> None:
    with pytest.raises(CorruptFileError):
        tree(message(0, "a", key=b"\xff\xfe"))
