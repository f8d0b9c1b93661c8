"""Settings: from the environment, checked, handed to workers unchanged."""

from __future__ import annotations

import json
import os
import traceback
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
import typer
from pydantic import ValidationError

from service.cli.settings_options import settings_of
from service.settings import Settings, digest_of, is_secret
from service.settings_sources import load_settings, load_sourced, to_environment
from service.uri_secrets import without_user_info

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
    monkeypatch.setenv("LANCE_SERVE_ALLOWED_ROOTS", " /one, /two,")
    assert load_settings(root="x").allowed_roots == ("/one", "/two")


def test_keys_are_kept_as_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    known = digest_of("two")
    monkeypatch.setenv("LANCE_SERVE_API_KEYS", f"one,{known}")
    assert load_settings(root="x").api_keys == (f"sha256:{sha256(b'one').hexdigest()}", known)


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
        {"jwt_keys": "keys.json"},
        {"tls_key": "key.pem"},
        {"max_filter_bytes": 2 << 20},
        {"root": None},
        {"databases": {"a": {"root": "y"}}},
        {"root": None, "databases": {"a/b": {"root": "y"}}},
        {"root": None, "databases": {"a": {"root": "y", "colour": "blue"}}},
        {"root": None, "databases": {"a": {"root": "y"}}, "storage_options": {"region": "eu"}},
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


def test_workers_get_the_same_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    places = {"a": {"root": "/a"}, "b": {"root": "s3://b", "storage_options": {"region": "eu"}}}
    settings = Settings.model_validate({"databases": places})
    for name, value in to_environment(settings).items():
        monkeypatch.setenv(name, value)
    assert load_settings() == settings
    found = {name: (place.root, place.storage_options) for name, place in settings.places().items()}
    assert found == {"a": ("/a", {}), "b": ("s3://b", {"region": "eu"})}


def test_a_single_root_is_a_database_without_a_name() -> None:
    (name, place), *more = Settings(root="x", storage_options={"a": "b"}).places().items()
    assert (name, place.root, place.storage_options, more) == (None, "x", {"a": "b"}, [])


def test_workers_get_no_setting_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in to_environment(Settings(root="x")).items():
        monkeypatch.setenv(name, value)
    assert load_settings().disk_cache is None


def test_secrets_are_not_shown() -> None:
    settings = Settings(root="x", api_keys=("hidden",), storage_options={"secret": "hidden"})
    assert "hidden" not in repr(settings)
    places = {"a": {"root": "/a", "storage_options": {"secret": "hidden"}}}
    assert "hidden" not in repr(Settings.model_validate({"databases": places}))


def test_every_setting_says_what_it_is_for() -> None:
    assert all(field.description for field in Settings.model_fields.values())


def test_options_win_over_variables_and_these_over_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("root: /file\nport: 1\nworkers: 3\nstorage_options: {region: eu}\n")
    monkeypatch.setenv("LANCE_SERVE_CONFIG", str(file))
    monkeypatch.setenv("LANCE_SERVE_PORT", "2")
    monkeypatch.setenv("LANCE_SERVE_WORKERS", "2")
    found = load_sourced(port="3")
    settings = found.settings
    assert (settings.root, settings.port, settings.workers) == ("/file", 3, 2)
    assert settings.storage_options == {"region": "eu"}
    assert {name: found.sources[name] for name in ("root", "port", "workers", "host")} == {
        "root": f"file {file}",
        "port": "option",
        "workers": "variable LANCE_SERVE_WORKERS",
        "host": "default",
    }


def test_a_toml_file_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('api_keys = ["a"]\n[databases.one]\nroot = "/one"\n')
    settings = load_settings(str(file))
    assert settings.api_keys == (digest_of("a"),)
    assert {name: place.root for name, place in settings.places().items()} == {"one": "/one"}


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("a.yaml", "colour: blue", "colour"),
        ("a.yaml", "- 1", "names and values"),
        ("a.yaml", "a: [", "neither"),
        ("a.toml", "a: 1", "neither"),
        ("none.yaml", None, "No such file"),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path: Path, name: str, text: Any, word: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=word):
        load_settings(str(tmp_path / name), root="x")


def test_what_may_hold_a_secret_is_marked_as_one() -> None:
    secrets = {name for name in Settings.model_fields if is_secret(name)}
    assert secrets == {"api_keys", "databases", "storage_options", "tls_key_password"}


SECRET = "letters"  # noqa: S105 - of nothing
PLACES = {"a": {"root": "/a", "storage_options": SECRET}}
WITH_PASSWORD = f"s3://me:{SECRET}@bucket/path"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("storage_options", f"{{{SECRET}"),
        ("storage_options", SECRET),
        ("storage_options", f'{{"key": ["{SECRET}"]}}'),
        ("databases", f'{{"{SECRET}'),
        ("databases", json.dumps(PLACES)),
        ("text_model", f"{{{SECRET}"),
        ("text_model", SECRET),
        ("port", SECRET),
        ("log_level", SECRET),
        ("root", WITH_PASSWORD),
        ("databases", json.dumps({"a": {"root": WITH_PASSWORD}})),
    ],
)
@pytest.mark.parametrize("way", ["option", "variable", "given"])
def test_errors_name_the_setting_and_never_its_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, way: str
) -> None:
    read: Callable[[], object] = partial(settings_of, None, None, {})
    if way == "variable":
        monkeypatch.setenv(f"LANCE_SERVE_{name.upper()}", value)
    elif way == "given":
        read = partial(load_settings, **{name: value})
    else:
        read = partial(settings_of, None, [f"{name}={value}"], {})
    with pytest.raises((typer.BadParameter, ValueError)) as caught:
        read()
    assert name in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", f"root: x\ntls_key_password: *{SECRET}"),
        ("a.yaml", f"root: x\ntls_key_password: !{SECRET} x"),
        ("a.yaml", f"root: x\ntls_key_password: {SECRET}: {SECRET}"),
        ("a.yaml", f"root: x\ntls_key_password: !!int {SECRET}"),
        ("a.toml", f'root = "x"\ntls_key_password = {SECRET}'),
        ("a.toml", f'root = "x"\ntls_key_password = "{SECRET}'),
    ],
)
def test_errors_of_a_file_tell_the_place_and_not_what_stands_there(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=r"neither TOML nor YAML") as caught:
        load_settings(str(tmp_path / name))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert "!!int" in text or "see line 2" in str(caught.value) or "end of" in str(caught.value)


def test_an_assignment_without_a_sign_is_counted_and_not_shown() -> None:
    with pytest.raises(typer.BadParameter, match=r"the 2\. of them") as caught:
        settings_of(None, ["port=1", SECRET], {})
    assert SECRET not in str(caught.value)


def test_an_option_that_is_misspelt_gets_the_names_there_are() -> None:
    with pytest.raises(typer.BadParameter, match="unknown setting nope; settings are: root"):
        settings_of(None, ["nope=1"], {})


def test_a_key_may_begin_with_a_brace() -> None:
    assert load_settings(root="x", api_keys="{one").api_keys == (digest_of("{one"),)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"http://me:{SECRET}@host:1/a@b", "http://(hidden)@host:1/a@b"),
        (f"https://{SECRET}@host", "https://(hidden)@host"),
        (f"https://me:{SECRET}@x@host", "https://(hidden)@host"),
        (f'["https://me:{SECRET}@host"]', '["https://(hidden)@host"]'),
        ("abfss://container@account/a", "abfss://container@account/a"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("/data/a@b", "/data/a@b"),
    ],
)
def test_who_stands_in_a_uri_is_hidden(text: str, shown: str) -> None:
    assert without_user_info(text) == shown
