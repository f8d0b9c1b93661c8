"""``lance-serve key``: keys for callers of the service."""

from __future__ import annotations

import json
import secrets
from pathlib import Path  # noqa: TC003 - typer reads annotations at run time
from typing import Annotated

import typer

from service.api.key_file import load_keys
from service.cli.output import output
from service.settings import digest_of

key = typer.Typer(help="Make keys for callers.", no_args_is_help=True)

_BYTES = 32
_PREFIX = "lsk_"
_TOML = ".toml"


@key.callback()
def _group() -> None:
    """Make keys for callers."""


@key.command()
def new(
    name: Annotated[str, typer.Argument(help="What the log calls the key.")],
    file: Annotated[
        Path | None,
        typer.Option(
            help="File of keys (setting api_keys_file), YAML or TOML, to add the entry to; a"
            " running service sees it a second later.",
            metavar="FILE",
        ),
    ] = None,
    database: Annotated[
        list[str] | None, typer.Option(help="A database that the key may read; all if left out.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            help="A table that the key may read, `a$t`, or beginnings, `a$*`; the first part is the"
            " database where there are several; all if left out."
        ),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="It may change tables too.")] = False,
) -> None:
    """Make a key. It is printed once, and kept nowhere: the file holds its SHA-256."""
    made = _PREFIX + secrets.token_urlsafe(_BYTES)
    entry: dict[str, object] = {"name": name, "sha256": digest_of(made).removeprefix("sha256:")}
    if database is not None:
        entry["databases"] = database
    if table is not None:
        entry["tables"] = table
    if write:
        entry["write"] = True
    if file is None:
        output(stderr=True).print("keys:", highlight=False)
        output(stderr=True).out(_as_yaml(entry), highlight=False)
    else:
        _add(file, entry)
    output().out(made, highlight=False)


def _add(file: Path, entry: dict[str, object]) -> None:
    """Put a file with one entry more in the place of the one there is, as a whole."""
    is_toml = file.suffix == _TOML
    new = file.with_name(f".{file.name}.new{file.suffix}")
    try:
        before = file.read_text() if file.exists() else ("" if is_toml else "keys:\n")
        before += "" if before == "" or before.endswith("\n") else "\n"
        new.touch(mode=0o600)
        new.write_text(f"{before}{_as_toml(entry) if is_toml else _as_yaml(entry)}\n")
        load_keys(new)
        new.replace(file)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{file}: no entry can be added: {error}") from error
    finally:
        new.unlink(missing_ok=True)


def _as_yaml(entry: dict[str, object]) -> str:
    return f"  - {json.dumps(entry)}"


def _as_toml(entry: dict[str, object]) -> str:
    return "\n".join(
        ["[[keys]]", *(f"{name} = {json.dumps(value)}" for name, value in entry.items())]
    )
