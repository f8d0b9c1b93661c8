"""``lance-serve config``: print the settings that are in effect."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.table import Table

from service.cli.output import output, print_table
from service.cli.settings_options import Config, Root, Set, settings_of
from service.settings import Settings, is_secret
from service.uri_secrets import without_user_info

if TYPE_CHECKING:
    from service.settings_sources import SourcedSettings


def config(root: Root = None, config: Config = None, set_: Set = None) -> None:
    """Print each setting, its value and where that comes from; secrets are not shown.

    In URIs these are the user and the password.
    """
    found = settings_of(config, set_, {"root": root})
    table = Table("setting", "value", "from", "meaning")
    for name, field in Settings.model_fields.items():
        table.add_row(name, _shown(found, name), found.sources[name], field.description)
    print_table(output(), table, folded=("value", "meaning"))


def _shown(found: SourcedSettings, name: str) -> str:
    value = found.settings.model_dump(mode="json")[name]
    if value is None:
        return "-"
    if is_secret(name):
        return "(none)" if value in ([], {}, "") else "(hidden)"
    return without_user_info(value if isinstance(value, str) else json.dumps(value))
