"""Files that are read anew when they change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from service.api.watched_file import WatchedFile

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def read_number(path: Path) -> int:
    try:
        return int(path.read_text())
    except OSError as error:
        raise ValueError("no file") from error


def test_a_change_is_seen_a_second_later(tmp_path: Path) -> None:
    file, clock = tmp_path / "n", Clock()
    file.write_text("1")
    watched = WatchedFile(file, read_number, now=clock)
    file.write_text("22")
    assert (watched.value(), watched.generation) == (1, 0)
    clock.now_s = 1.0
    assert (watched.value(), watched.generation) == (22, 1)
    clock.now_s = 2.0
    assert (watched.value(), watched.generation) == (22, 1)


def test_a_wrong_or_missing_file_leaves_the_value(tmp_path: Path) -> None:
    file, clock = tmp_path / "n", Clock()
    file.write_text("1")
    watched = WatchedFile(file, read_number, now=clock)
    file.write_text("many")
    clock.now_s = 1.0
    assert watched.value() == 1
    file.unlink()
    clock.now_s = 2.0
    assert (watched.value(), watched.generation) == (1, 0)
    file.write_text("3")
    clock.now_s = 3.0
    assert (watched.value(), watched.generation) == (3, 1)


def test_a_wrong_file_is_refused_at_first_and_reloading_waits_for_no_second(
    tmp_path: Path,
) -> None:
    file = tmp_path / "n"
    with pytest.raises(ValueError, match="no file"):
        WatchedFile(file, read_number)
    file.write_text("1")
    watched = WatchedFile(file, read_number, now=Clock())
    file.write_text("2")
    watched.reload()
    assert watched.value() == 2
