"""Where the values of the settings come from: options, then the environment, then a file."""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from pydantic_settings import SettingsError

from service.settings import ENV_PREFIX, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CONFIG_VARIABLE = f"{ENV_PREFIX}CONFIG"
"""Names the file where no option does."""

_DEFAULT, _OPTION = "default", "option"
_OBJECTS = frozenset(("storage_options", "databases", "text_model"))
"""Settings whose text is a JSON object; a key or a password may begin with a brace too."""
_TOML_PLACE = re.compile(r"\(at (line \d+, column \d+|end of document)\)$")


@dataclass(frozen=True, slots=True)
class SourcedSettings:
    """Settings, and for each by name what gave its value."""

    settings: Settings
    sources: Mapping[str, str]


def load_settings(config: str | None = None, **given: object) -> Settings:
    """Read the settings; parameters and errors as `load_sourced`."""
    return load_sourced(config, **given).settings


def load_sourced(config: str | None = None, **given: object) -> SourcedSettings:
    """Read the settings from a file and the environment; values that are given win.

    Parameters
    ----------
    config
        The file, TOML or YAML; None = the one that LANCE_SERVE_CONFIG names, if it does.
    given
        Values by name; texts are read as those of variables are.

    Raises
    ------
    ValueError
        A value is out of range, the file cannot be read, or it or the environment names a setting
        that does not exist. (A misspelt one would otherwise be ignored without a word.) The text
        never holds a value, which may be a secret.
    """
    _require_known_variables()
    _require_known_names(given)
    path = os.environ.get(CONFIG_VARIABLE) if config is None else config
    in_file = {} if path is None else _read_file(Path(path))
    variables = {
        name: variable
        for name in Settings.model_fields
        if (variable := ENV_PREFIX + name.upper()) in os.environ
    }
    from_file = {name: value for name, value in in_file.items() if name not in variables}
    options = {name: _read_text(name, value) for name, value in given.items()}
    try:
        settings = Settings(**(from_file | options))  # type: ignore[arg-type]  # pydantic checks them
    except SettingsError as error:
        raise ValueError(f"the text of a variable is no JSON object: {error}") from error
    sources = dict.fromkeys(Settings.model_fields, _DEFAULT)
    sources |= dict.fromkeys(from_file, f"file {path}")
    sources |= {name: f"variable {variable}" for name, variable in variables.items()}
    sources |= dict.fromkeys(options, _OPTION)
    return SourcedSettings(settings, sources)


def to_environment(settings: Settings) -> dict[str, str]:
    """Return the variables from which ``load_settings`` makes these settings again.

    Worker processes start with a fresh interpreter and take their settings from there.
    """
    values = settings.model_dump(mode="json", exclude_none=True)
    return {ENV_PREFIX + name.upper(): _as_text(value) for name, value in values.items()}


def _require_known_variables() -> None:
    known = {ENV_PREFIX + name.upper() for name in Settings.model_fields} | {CONFIG_VARIABLE}
    unknown = sorted(n for n in os.environ if n.startswith(ENV_PREFIX) and n not in known)
    if unknown:
        raise ValueError(
            f"unknown setting {', '.join(unknown)}; settings are: {', '.join(sorted(known))}"
        )


def _require_known_names(names: Iterable[object], where: str = "") -> None:
    unknown = sorted(str(name) for name in names if name not in Settings.model_fields)
    if unknown:
        raise ValueError(
            f"unknown setting {', '.join(unknown)}{where}; settings are:"
            f" {', '.join(Settings.model_fields)}"
        )


def _read_file(path: Path) -> Mapping[str, object]:
    found = read_document(path)
    _require_known_names(found, f" in {path}")
    return found


def read_document(path: Path) -> dict[str, object]:
    """Return the members of a TOML file, or of a YAML file, which JSON is too.

    Raises
    ------
    ValueError
        It cannot be read, or holds no members. The text says where it is wrong and not what stands
        there, which may be a secret.
    """
    try:
        text = path.read_text()
        found: object = tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path} is neither TOML nor YAML{_place_of(error)}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError(f"{path} must hold names and values")  # noqa: TRY004 - of the file
    return found


def _place_of(error: Exception) -> str:
    """Return where a document is wrong, as far as an error tells; its own text quotes values."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f": see line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}"
    place = _TOML_PLACE.search(str(error))
    return "" if place is None else f": see {place[1]}"


def _read_text(name: str, value: object) -> object:
    """Return the object that a text is, for settings that are one."""
    if name not in _OBJECTS or not isinstance(value, str) or not value.startswith("{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: the text is no JSON object: {error}") from error


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    if isinstance(value, dict):
        return json.dumps(value)
    return str(value)
