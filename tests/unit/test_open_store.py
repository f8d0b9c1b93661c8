"""Which store a path or URI opens, and which are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lance_core.errors import InvalidRequestError
from lance_core.io.mapped_store import MappedStore
from lance_core.io.obstore_store import ObStore
from lance_core.io.open import open_parent, open_store

if TYPE_CHECKING:
    from pathlib import Path

S3 = {"region": "us-east-1", "access_key_id": "id", "secret_access_key": "secret"}


@pytest.mark.parametrize(
    ("uri", "root"),
    [
        ("/data/my sets", "/data/my sets"),
        ("/data/sets/", "/data/sets"),
        ("file:///data/my%20sets", "/data/my sets"),
        ("file://localhost/data/a%23b", "/data/a#b"),
        ("file:///data/a#b", "/data/a#b"),
        ("/data/100%25", "/data/100%25"),
    ],
)
def test_a_local_place_is_mapped(uri: str, root: str) -> None:
    store = open_store(uri)
    assert isinstance(store, MappedStore)
    assert store.uri == root


@pytest.mark.parametrize("uri", ["s3://bucket/sets", "gs://bucket", "memory://"])
def test_a_remote_place_is_read_through_obstore(uri: str) -> None:
    assert isinstance(open_store(uri), ObStore)


@pytest.mark.parametrize("uri", ["", "nope://bucket/x", "file://host/data", "file://", "a\0b"])
def test_a_place_that_cannot_be_is_refused(uri: str) -> None:
    with pytest.raises(InvalidRequestError):
        open_store(uri)


@pytest.mark.parametrize(
    "options",
    [
        {"no_such_option": "1"},
        {"allow_http": "perhaps"},
        {"timeout": "soon"},
        {"client_max_retries": "many"},
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError, match="cannot open s3://bucket"):
        open_store("s3://bucket/x", options)


def test_options_of_store_and_client_come_in_one_mapping_in_any_case() -> None:
    options = {"AWS_REGION": "eu-west-1", "ALLOW_HTTP": "true", "timeout": "5s"}
    assert open_store("s3://bucket/x", {**options, "client_retry_timeout": "2"}).coalesce_gap > 0


def test_remote_stores_close_larger_gaps_than_local_ones() -> None:
    remote, local = ObStore("s3://bucket/x"), ObStore("file:///")
    assert (remote.coalesce_gap, local.coalesce_gap) == (64 << 10, 4 << 10)
    assert MappedStore("data").coalesce_gap == 0


def test_one_bucket_seen_with_other_options_is_another_store() -> None:
    plain, mine, same = ObStore("s3://b/x"), ObStore("s3://b/x", S3), ObStore("s3://b/x/", S3)
    theirs = ObStore("s3://b/x", {**S3, "endpoint": "http://localhost:9000"})
    assert mine.key == same.key
    assert len({plain.key, mine.key, theirs.key}) == 3


def test_the_identity_of_a_store_does_not_show_its_secrets() -> None:
    assert "secret" not in ObStore("s3://b/x", S3).uri


def test_two_memory_stores_are_two_places() -> None:
    first, second = open_store("memory://"), open_store("memory://")
    first.put("a", b"0")
    assert first.uri != second.uri
    assert list(second.list_tree("")) == []


@pytest.mark.parametrize(
    ("uri", "root", "name"),
    [
        ("/data/a.lance", "/data", "a.lance"),
        ("/a", "/", "a"),
        ("file:///my%20sets/a%20b.lance", "/my sets", "a b.lance"),
        ("file:///a", "/", "a"),
    ],
)
def test_an_object_is_a_name_in_a_store(uri: str, root: str, name: str) -> None:
    store, found = open_parent(uri)
    assert (store.uri, found) == (root, name)


def test_a_bare_name_lies_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store, name = open_parent("a.lance")
    assert (store.uri, name) == (str(tmp_path), "a.lance")


@pytest.mark.parametrize("uri", ["", "/data/", "s3://bucket", "..", "/data/."])
def test_a_place_without_a_name_is_no_object(uri: str) -> None:
    with pytest.raises(InvalidRequestError, match="no name"):
        open_parent(uri)
