import pytest

from lance_core.table.naming import (
    ManifestName,
    NamingScheme,
    data_file_path,
    deletion_file_path,
    index_file_path,
    is_detached,
    manifest_path,
    parse_manifest_name,
)

NAMES = [
    ("1.manifest", 1, NamingScheme.V1),
    ("123456.manifest", 123456, NamingScheme.V1),
    ("18446744073709551614.manifest", 1, NamingScheme.V2),
    ("00000000000000000000.manifest", 2**64 - 1, NamingScheme.V2),
    ("d9896402412489202471.manifest", 9896402412489202471, NamingScheme.DETACHED),
]


@pytest.mark.parametrize(("name", "version", "scheme"), NAMES)
def test_a_manifest_name_states_version_and_scheme(
    name: str, version: int, scheme: NamingScheme
) -> None:
    assert parse_manifest_name(name) == ManifestName(version, scheme)


@pytest.mark.parametrize(("name", "version", "scheme"), NAMES)
def test_a_version_and_a_scheme_make_a_name(name: str, version: int, scheme: NamingScheme) -> None:
    assert manifest_path(version, scheme) == f"_versions/{name}"


@pytest.mark.parametrize(
    "name",
    [
        ".tmp_1.manifest",
        "1.manifest#1",
        "1.manifest-9a1e3c9c-8a4c-4d0f-9f55-0d2b6f0b8f7a",
        "latest_version_hint.json",
        ".manifest",
        "d.manifest",
        "dd5.manifest",
        "-1.manifest",
        "01.manifest",
        "1_000.manifest",
        "²³.manifest",
        "99999999999999999999.manifest",
        "d99999999999999999999.manifest",
        "123456789012345678901.manifest",
        "copy of 1.manifest",
    ],
)
def test_any_other_name_is_ignored(name: str) -> None:
    assert parse_manifest_name(name) is None


def test_the_top_bit_marks_a_detached_version() -> None:
    assert is_detached(2**63)
    assert not is_detached(2**63 - 1)


def test_files_lie_in_the_folder_of_their_kind() -> None:
    assert data_file_path("a.lance") == "data/a.lance"
    assert index_file_path("6f", "auxiliary.idx") == "_indices/6f/auxiliary.idx"
    assert deletion_file_path(1, 2, 3, "bin") == "_deletions/1-2-3.bin"
