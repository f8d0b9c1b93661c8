import pytest

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.table.flags import SUPPORTED_READ, Feature, FeatureFlags, check_readable, names_of


def check(reader: int, writer: int) -> None:
    check_readable(FeatureFlags(reader, writer), "_versions/1.manifest")


def test_every_supported_flag_may_be_set_in_both_words() -> None:
    check(SUPPORTED_READ, SUPPORTED_READ)


@pytest.mark.parametrize("bit", [bit for bit in range(64) if not SUPPORTED_READ >> bit & 1])
def test_every_other_reader_flag_is_refused_by_name(bit: int) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"_versions/1\.manifest") as raised:
        check(1 << bit, 1 << bit)
    assert names_of(1 << bit) in str(raised.value)


def test_a_writer_flag_that_is_unknown_does_not_hinder_reading() -> None:
    check(0, 1 << 50 | Feature.FIELD_IDS_NOT_REUSED)


@pytest.mark.parametrize(
    "feature",
    [
        Feature.MIXED_FILE_VERSIONS,
        Feature.TAGGED_REUSE_INDEX,
        Feature.MANAGED_BLOBS,
        Feature.ZONE_WRITE_SEEDS,
    ],
)
def test_a_paired_flag_in_one_word_only_is_corrupt(feature: Feature) -> None:
    with pytest.raises(CorruptFileError, match="one feature flag word only"):
        check(feature, 0)
    with pytest.raises(CorruptFileError, match="one feature flag word only"):
        check(0, feature)
