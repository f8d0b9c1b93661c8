"""A whole schema: top-level fields and what is looked up in them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from lance_core.errors import UnknownColumnError
from lance_core.schema.path import join_path, split_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lance_core.ids import FieldId
    from lance_core.schema.field import LanceField


@dataclass(frozen=True, slots=True)
class LanceSchema:
    """Top-level fields in order, and the schema's metadata as bytes decoded from UTF-8."""

    fields: tuple[LanceField, ...]
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    _by_name: Mapping[str, LanceField] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # the first of two fields of one name is the one that is found
        by_name = {top.name: top for top in reversed(self.fields)}
        object.__setattr__(self, "_by_name", by_name)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the top-level fields."""
        return tuple(top.name for top in self.fields)

    def top(self, name: str) -> LanceField | None:
        """Return the top-level field of a name, the first of several."""
        return self._by_name.get(name)

    def walk(self) -> Iterator[LanceField]:
        """Yield every field, parents before children: the order in which a file lists them."""
        for top in self.fields:
            yield from top.walk()

    def field(self, path: str) -> LanceField:
        """Return the field that ``path`` names (see ``split_path``).

        A top-level name that is written as it stands is found first, whatever it holds.

        Raises
        ------
        UnknownColumnError
            The schema has no such field.
        InvalidRequestError
            The path cannot be split.
        """
        return self._walk_to(path)[-1]

    def stored_field(self, path: str) -> tuple[LanceField, tuple[str, ...]]:
        """Return what has to be read to get the field that ``path`` names, and the way from there.

        The way is empty unless the field lies in a packed struct, whose children share one column.
        A part of list items comes as the list of only that part: ``tags.item.x`` as
        ``list<struct<x>>``. Errors as `field`.
        """
        found = self._walk_to(path)
        for depth, each in enumerate(found):
            if each.is_packed:
                return each, tuple(below.name for below in found[depth + 1 :])
            if each.logical_type != "struct" and depth < len(found) - 1:
                return _only(found[depth:]), ()
        return found[-1], ()

    def _walk_to(self, path: str) -> list[LanceField]:
        """Return the fields on the way to the one that ``path`` names, itself included."""
        if path in self._by_name:
            return [self._by_name[path]]
        fields = self.fields
        found: list[LanceField] = []
        for part in split_path(path) if path != "" else ():
            step = next((each for each in fields if each.name == part), None)
            if step is None:
                found = []
                break
            found.append(step)
            fields = () if step.is_blob else step.children
        if len(found) == 0:
            raise UnknownColumnError(path, self.names, where="the schema")
        return found

    def path_of(self, field_id: FieldId) -> str:
        """Return the path by which `field` finds the field with this id.

        Raises
        ------
        UnknownColumnError
            The schema has no such field.
        """
        for top in self.fields:
            way = _way_to(top, field_id)
            if way is not None:
                return way[0] if len(way) == 1 else join_path(way)
        raise UnknownColumnError(f"field id {field_id}", self.names, where="the schema")

    def by_id(self, field_id: FieldId) -> LanceField:
        """Return the field with this id.

        Raises
        ------
        UnknownColumnError
            The schema has no such field.
        """
        for each in self.walk():
            if each.id == field_id:
                return each
        raise UnknownColumnError(f"field id {field_id}", self.names, where="the schema")


def _way_to(field: LanceField, field_id: FieldId) -> tuple[str, ...] | None:
    """Return the names that lead from a field to one below it, or None if it is not there."""
    if field.id == field_id:
        return (field.name,)
    below = (_way_to(child, field_id) for child in field.children)
    return next(((field.name, *way) for way in below if way is not None), None)


def _only(way: Sequence[LanceField]) -> LanceField:
    """Return the first field of a way with nothing below it but the way; maps stay whole."""
    head, below = way[0], way[1:]
    if len(below) == 0 or head.logical_type == "map":
        return head
    return replace(head, children=(_only(below),))
