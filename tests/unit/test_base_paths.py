from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.proto import table_pb2
from lance_core.table.snapshot import Snapshot, open_snapshot
from tests.manifest_bytes import dataset_of, manifest_file, manifest_message

if TYPE_CHECKING:
    from lance_core.table.base_paths import Place

OTHER = RangeScheduler(MemoryStore())


def snapshot_of(base_id: int | None, *bases: table_pb2.BasePath) -> Snapshot:
    message = manifest_message()
    message.base_paths.extend(bases)
    if base_id is not None:
        message.fragments[0].files[0].base_id = base_id
    return open_snapshot(dataset_of(manifest_file(message)), None, lambda _: OTHER)


def data_place(snapshot: Snapshot) -> Place:
    return snapshot.data_place(snapshot.fragments[0].data_files[0])


def base(number: int, path: str = "/other", *, is_root: bool = True) -> table_pb2.BasePath:
    return table_pb2.BasePath(id=number, path=path, is_dataset_root=is_root)


def test_a_file_without_base_lies_below_the_datasets_own_root() -> None:
    snapshot = snapshot_of(None, base(0))
    place = data_place(snapshot)
    assert place.scheduler is snapshot.scheduler
    assert place.path == "data/f0.lance"


def test_the_base_0_is_a_base() -> None:
    place = data_place(snapshot_of(0, base(0)))
    assert place.scheduler is OTHER
    assert place.path == "data/f0.lance"


def test_a_base_that_is_no_dataset_holds_files_without_folders() -> None:
    assert data_place(snapshot_of(7, base(0), base(7, is_root=False))).path == "f0.lance"


def test_a_base_that_does_not_exist_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="no base path 3"):
        data_place(snapshot_of(3, base(0)))


def test_two_bases_with_one_id_are_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="same id"):
        data_place(snapshot_of(0, base(0), base(0, "/elsewhere")))


@pytest.mark.parametrize("path", ["", "other", "../other"])
def test_a_relative_base_is_refused(path: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="absolute"):
        data_place(snapshot_of(0, base(0, path)))


def test_a_snapshot_that_was_given_no_means_opens_no_base() -> None:
    message = manifest_message()
    message.base_paths.append(base(0))
    message.fragments[0].files[0].base_id = 0
    with pytest.raises(UnsupportedFeatureError, match="/other"):
        data_place(open_snapshot(dataset_of(manifest_file(message))))
