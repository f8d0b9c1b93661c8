"""Settings as options of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from service.settings_sources import load_sourced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.settings_sources import SourcedSettings

Config = Annotated[
    str | None,
    typer.Option(
        "--config",
        help="File of settings, TOML or YAML; variables and options win. By default the one that"
        " LANCE_SERVE_CONFIG names.",
        metavar="FILE",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any setting, written as in the environment.", metavar="NAME=VALUE"),
]
Root = Annotated[
    str | None,
    typer.Option(help="Directory or object-store URI; every NAME.lance below is a table."),
]


def settings_of(
    config: str | None, assignments: Sequence[str] | None, given: Mapping[str, object]
) -> SourcedSettings:
    """Return the settings; of ``given``, options that are None were left out."""
    values = {name: value for name, value in given.items() if value is not None}
    for number, each in enumerate(assignments or (), start=1):
        name, sign, value = each.partition("=")
        if sign == "":  # what stands there may be a secret
            raise typer.BadParameter(f"--set, the {number}. of them: write NAME=VALUE")
        values[name.strip()] = value
    try:
        return load_sourced(config, **values)
    except ValidationError as error:
        raise typer.BadParameter("; ".join(_mistakes(error))) from error
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _mistakes(error: ValidationError) -> list[str]:
    return [
        f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}"
        if mistake["loc"]
        else mistake["msg"]
        for mistake in error.errors(include_input=False, include_url=False)
    ]
