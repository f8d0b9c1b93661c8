"""One node of a Lance schema."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lance_core.ids import FieldId

_PACKED = ("lance-encoding:packed", "packed")  # pylance 14.0.2 takes both
_YES = frozenset(("true", "1", "on", "yes", "y"))
_FIXED_SIZE_LIST = "fixed_size_list:"
_BLOB = "lance-encoding:blob"
_EXTENSION = "ARROW:extension:name"
_BLOB_V2 = "lance.blob.v2"
_NO_METADATA: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LanceField:
    """A column, or a part of a nested one, with its children in order of appearance.

    ``logical_type`` is the format's type string (``int32``, ``fixed_size_list:float:128``, …).
    """

    id: FieldId
    name: str
    logical_type: str
    nullable: bool
    metadata: Mapping[str, str] = field(default_factory=lambda: _NO_METADATA)
    children: tuple[LanceField, ...] = ()

    @property
    def asks_to_be_packed(self) -> bool:
        """Whether its metadata asks for one column, on whatever type.

        pylance 14.0.2 writes one column for each of these words; it reads all of them in 2.0 files,
        and "true" alone in later ones.
        """
        return any(self.metadata.get(key, "").lower() in _YES for key in _PACKED)

    @property
    def asks_in_other_words(self) -> bool:
        """Whether it asks to be packed by another word than "true"."""
        asked = (self.metadata.get(key, "").lower() for key in _PACKED)
        return self.asks_to_be_packed and "true" not in asked

    @property
    def is_packed(self) -> bool:
        """Whether all children of this struct share one column, row by row.

        Fields of other types may ask for it too; it means nothing there, as to pylance 14.0.2.
        """
        return self.asks_to_be_packed and self.logical_type == "struct"

    @property
    def is_dictionary(self) -> bool:
        """Whether its values, or the elements of its fixed-size lists, are dictionaries."""
        kind = self.logical_type
        while kind.startswith(_FIXED_SIZE_LIST):
            kind = kind.removeprefix(_FIXED_SIZE_LIST)
        return kind.startswith("dict:")

    @property
    def is_blob(self) -> bool:
        """Whether the column holds descriptions of values that are kept elsewhere."""
        return _BLOB in self.metadata or self.metadata.get(_EXTENSION) == _BLOB_V2

    @property
    def owns_column(self) -> bool:
        """Whether a 2.1+ file keeps this field itself, not only its children, in a column."""
        return len(self.children) == 0 or self.is_packed or self.is_blob

    def leaves(self) -> Iterator[LanceField]:
        """Yield the fields at or below this one that own a column of a 2.1+ file, in order."""
        if self.owns_column:
            yield self
            return
        for child in self.children:
            yield from child.leaves()

    def below(self, way: Sequence[str]) -> LanceField:
        """Return a field below this one, by the names on the way to it, all of which exist."""
        field = self
        for name in way:
            field = next(child for child in field.children if child.name == name)
        return field

    def walk(self) -> Iterator[LanceField]:
        """Yield this field and all below it, parents before children."""
        yield self
        for child in self.children:
            yield from child.walk()
