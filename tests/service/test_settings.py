"""Settings: from the environment, checked, handed to workers unchanged."""

from __future__ import annotations

import os
from typing import Any

import pytest
from pydantic import ValidationError

from service.settings import Settings, load_settings, to_environment


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("LANCE_SERVE_"):
            monkeypatch.delenv(name)


def test_values_that_are_given_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_SERVE_ROOT", "/a")
    monkeypatch.setenv("LANCE_SERVE_PORT", "9000")
    settings = load_settings(port=9001)
    assert (settings.root, settings.port) == ("/a", 9001)


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_SERVE_API_KEYS", " one, two,")
    assert load_settings(root="x").api_keys == ("one", "two")


def test_an_unknown_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_SERVE_CASH_BYTES", "1")
    with pytest.raises(ValueError, match="LANCE_SERVE_CASH_BYTES"):
        load_settings(root="x")


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 70000},
        {"cache_bytes": 0},
        {"query_timeout_s": 0},
        {"workers": 0},
        {"read_consistency_interval": -1},
        {"log_level": "LOUD"},
        {"colour": "blue"},
        {"root": None},
    ],
    ids=repr,
)
def test_values_out_of_range_are_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        load_settings(**{"root": "x", **wrong})


def test_workers_get_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(
        root="s3://bucket/x",
        api_keys=("a", "b"),
        insecure=True,
        query_timeout_s=1.5,
        storage_options={"region": "eu", "note": 'with "quotes"'},
        allowed_roots=("/x", "/y"),
        disk_cache="/cache",
    )
    for name, value in to_environment(settings).items():
        monkeypatch.setenv(name, value)
    assert load_settings() == settings


def test_workers_get_no_setting_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in to_environment(Settings(root="x")).items():
        monkeypatch.setenv(name, value)
    assert load_settings().disk_cache is None


def test_secrets_are_not_shown() -> None:
    settings = Settings(root="x", api_keys=("hidden",), storage_options={"secret": "hidden"})
    assert "hidden" not in repr(settings)


def test_every_setting_says_what_it_is_for() -> None:
    assert all(field.description for field in Settings.model_fields.values())
