"""Who asks, and what may be shown to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from service.catalog.errors import PermissionDeniedError
from service.catalog.names import Namespace

if TYPE_CHECKING:
    from service.catalog.names import TableName

_ROOT = Namespace()
_REST = "*"
_BETWEEN_PARTS = "$"


class Rights(BaseModel):
    """What a key or a token may do, as files and claims say it; what is left out is not bounded.

    An entry that nobody knows is refused: a misspelt bound would be none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    databases: tuple[str, ...] | None = Field(None, description="Names; absent = all.")
    tables: tuple[str, ...] | None = Field(
        None,
        description="Identifiers such as `a$t`, or their beginnings such as `a$*`; where there are"
        " several databases, the first part is the database; absent = all.",
    )
    write: bool = Field(False, description="Whether tables may be changed.")


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who was recognised, by the name that the log shows.

    Parameters
    ----------
    name
        Of the key, or the subject of the token; None = nobody was asked who they are.
    databases
        Those that they may read; None = all.
    tables, beginnings
        Identifiers of tables that they may read, and what others may begin with; both None = all.
        They begin with the database where it has a name, however a request names it.
    can_write
        Whether they may change tables.
    """

    name: str | None
    databases: frozenset[str] | None = None
    tables: frozenset[str] | None = None
    beginnings: tuple[str, ...] | None = None
    can_write: bool = False

    @classmethod
    def of(cls, name: str, rights: Rights) -> Caller:
        """Return the one who has some rights."""
        databases = None if rights.databases is None else frozenset(rights.databases)
        if rights.tables is None:
            return cls(name, databases, can_write=rights.write)
        beginnings = [each for each in rights.tables if each.endswith(_REST)]
        return cls(
            name,
            databases,
            frozenset(rights.tables) - frozenset(beginnings),
            tuple(each.removesuffix(_REST) for each in beginnings),
            can_write=rights.write,
        )

    def may_read(self, database: str | None, table: TableName) -> bool:
        """Tell whether a table may be shown; ``database`` is None where there is only one."""
        if not self.may_enter(database):
            return False
        if self.tables is None or self.beginnings is None:
            return True
        parts = (*table.namespace.parts, table.name)
        if any(_BETWEEN_PARTS in part for part in parts):
            return False  # it would read like another table's
        name = _identifier(database, *parts)
        return name in self.tables or name.startswith(self.beginnings)

    def may_enter(self, database: str | None, namespace: Namespace = _ROOT) -> bool:
        """Tell whether a namespace may hold tables for them; the root is a whole database.

        A database without a name is none of those that rights name.
        """
        if self.databases is not None and database not in self.databases:
            return False
        if self.tables is None or self.beginnings is None:
            return True
        if any(_BETWEEN_PARTS in part for part in namespace.parts):
            return False  # as in `may_read`
        name = _identifier(database, *namespace.parts)
        if name == "":
            return True
        inside = f"{name}{_BETWEEN_PARTS}"
        return any(each.startswith(inside) for each in (*self.tables, *self.beginnings)) or (
            inside.startswith(self.beginnings)
        )

    def require_table(self, database: str | None, table: TableName) -> None:
        """Raise ``PermissionDeniedError`` unless a table may be shown."""
        if not self.may_read(database, table):
            name = _identifier(database, *table.namespace.parts, table.name)
            raise PermissionDeniedError(f"this key has no right to read table '{name}'")

    def require_namespace(self, database: str | None, namespace: Namespace = _ROOT) -> None:
        """Raise ``PermissionDeniedError`` unless a namespace may hold tables for them."""
        if not self.may_enter(database, namespace):
            name = _identifier(database, *namespace.parts)
            raise PermissionDeniedError(f"this key has no right to enter namespace '{name}'")


def _identifier(database: str | None, *parts: str) -> str:
    """Return how rights name something: as clients that name no database beside it."""
    return _BETWEEN_PARTS.join(parts if database is None else (database, *parts))


ANYONE = Caller(None, can_write=True)
"""Whoever asks a service that has no keys."""
