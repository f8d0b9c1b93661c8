from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lance_core.errors import CorruptFileError
from lance_core.io.memory_store import MemoryStore
from lance_core.table.refs import (
    Branch,
    list_tags,
    read_branch,
    read_tag,
    write_branch,
)


def store_of(text: str, path: str = "_refs/tags/t.json") -> MemoryStore:
    store = MemoryStore()
    store.put(path, text.encode())
    return store


def test_a_tag_of_an_old_writer_has_neither_times_nor_metadata() -> None:
    tag = read_tag(store_of('{"branch": null, "version": 3, "manifestSize": 9}'), "t")
    assert (tag.version, tag.manifest_size, tag.created_at) == (3, 9, None)
    assert tag.metadata == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{}",
        '{"version": "3"}',
        '{"version": -1}',
        '{"version": 18446744073709551616}',
        '{"version": 1, "branch": 5}',
        '{"version": 1, "createdAt": "yesterday"}',
        '{"version": 1, "metadata": {"a": 1}}',
        "[" * 100_000,
        "\ud800",
    ],
)
def test_a_tag_that_cannot_be_understood_is_corrupt(text: str) -> None:
    store = MemoryStore()
    store.put("_refs/tags/t.json", text.encode(errors="surrogatepass"))
    with pytest.raises(CorruptFileError):
        read_tag(store, "t")


@pytest.mark.parametrize(
    "text",
    [
        '{"parentVersion": 1}',
        '{"parentVersion": 1, "createAt": 99999999999999}',
        '{"parentVersion": 1, "createAt": 1, "identifier": {"version_mapping": 5}}',
        '{"parentVersion": 1, "createAt": 1, "identifier": {"version_mapping": [[1]]}}',
    ],
)
def test_a_branch_that_cannot_be_understood_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptFileError):
        read_branch(store_of(text, "_refs/branches/b.json"), "b")


def test_foreign_files_among_the_tags_are_passed_over() -> None:
    store = store_of('{"version": 1}')
    store.put("_refs/tags/notes.txt", b"")
    store.put("_refs/tags/a b.json", b"")
    assert [tag.name for tag in list_tags(store)] == ["t"]


def test_a_branch_comes_back() -> None:
    store = MemoryStore()
    when = datetime(2026, 11, 28, tzinfo=UTC)
    branch = Branch("a/b", "c", 7, ((2, "f" * 32), (7, "0" * 32)), when, 424)
    write_branch(store, branch)
    assert read_branch(store, "a/b") == branch
