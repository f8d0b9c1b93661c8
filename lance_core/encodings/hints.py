"""What the metadata of a field asks of its encodings (file format, section 2.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

T = TypeVar("T", int, float)

PREFIX = "lance-encoding:"
_COMPRESSIONS = ("zstd", "lz4", "fsst", "none")
_STRUCTURES = ("miniblock", "fullzip")
_SPLITS = ("off", "on", "auto")
_GENERAL = ("zstd", "lz4", "none")
_FLAGS = ("true", "false")
_LEVELS = (-(1 << 17), 22)
"""What Zstandard takes; LZ4 has no levels and ignores them."""
_RATIOS = (0.0, 1.0)
_DIVISORS = (1, 1 << 31)


@dataclass(frozen=True, slots=True)
class Hints:
    """The metadata keys ``lance-encoding:...`` of one field; None where one is not given.

    ``rle_threshold`` is runs per value, above which runs are not coded. A dictionary is tried if
    it has at most one item per ``dict_divisor`` values and makes the page smaller than
    ``dict_size_ratio`` times what it was. ``bss`` says whether bytes of numbers are split into
    streams before a compression that was asked for; "auto", like None, tries it.
    """

    compression: str | None = None
    compression_level: int | None = None
    structural_encoding: str | None = None
    rle_threshold: float | None = None
    bss: str | None = None
    dict_divisor: int | None = None
    dict_size_ratio: float | None = None
    dict_values_compression: str | None = None

    @classmethod
    def of(cls, metadata: Mapping[str, str], column: str) -> Hints:
        """Read the metadata of a field; keys that do not concern encodings are ignored.

        Parameters
        ----------
        metadata
            Keys and values of the field.
        column
            Its name, for errors.

        Raises
        ------
        InvalidRequestError
            A value is not one that the key takes; names column, key and what is allowed.
        """
        if not any(key.startswith(PREFIX) for key in metadata):
            return _NONE
        keys = _Keys(metadata, column)
        keys.choice("packed", _FLAGS)  # what it says is the field's own (`LanceField.is_packed`)
        return cls(
            compression=keys.choice("compression", _COMPRESSIONS),
            compression_level=keys.number("compression-level", int, _LEVELS),
            structural_encoding=keys.choice("structural-encoding", _STRUCTURES),
            rle_threshold=keys.number("rle-threshold", float, _RATIOS),
            bss=keys.choice("bss", _SPLITS),
            dict_divisor=keys.number("dict-divisor", int, _DIVISORS),
            dict_size_ratio=keys.number("dict-size-ratio", float, _RATIOS),
            dict_values_compression=keys.choice("dict-values-compression", _GENERAL),
        )


_NONE = Hints()


@dataclass(frozen=True, slots=True)
class _Keys:
    metadata: Mapping[str, str]
    column: str

    def text(self, key: str) -> str | None:
        value = self.metadata.get(PREFIX + key)
        return None if value is None else value.lower()

    def choice(self, key: str, allowed: Collection[str]) -> str | None:
        value = self.text(key)
        if value is not None and value not in allowed:
            raise self._refused(key, value, "one of " + ", ".join(allowed))
        return value

    def number(self, key: str, parse: Callable[[str], T], allowed: tuple[T, T]) -> T | None:
        text = self.text(key)
        if text is None:
            return None
        lowest, highest = allowed
        try:
            value = parse(text)
        except ValueError:
            value = None
        if value is None or not lowest <= value <= highest:
            raise self._refused(key, text, f"a number from {lowest} to {highest}")
        return value

    def _refused(self, key: str, value: str, allowed: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"metadata {PREFIX}{key} of column {self.column!r} is {value!r}; it must be {allowed}"
        )
