"""Which files rows are read from: by names, folders and patterns, and by their formats."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.table.dataset_stores import open_dataset_store
from pipeline.source_formats import ArrowFile, Parquet
from pipeline.source_input import COMPRESSIONS, SourceFile
from pipeline.source_text import Csv, JsonLines, readable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.source_formats import Piece, SourceFormat

FORMATS = ("parquet", "csv", "tsv", "json", "arrow")

_ENDINGS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_MAGIC = "*?["
_HIDDEN = ("_", ".")
_MOST_SAMPLED = 100


@dataclass(frozen=True, slots=True)
class Sources:
    """Files of rows, and how they are read.

    Parameters
    ----------
    paths
        Files, folders and patterns such as ``data/*.parquet``; paths or URIs.
    storage_options
        Of the stores that they lie in.
    form
        Their format; None = as their names tell.
    types
        What columns are to become, where that is not what files say or what is guessed of text.
    delimiter
        Between values of CSV files; None = a comma.
    known
        What text is read as, where it is not given.
    """

    paths: tuple[str, ...]
    storage_options: Mapping[str, str] | None = None
    form: str | None = None
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    delimiter: str | None = None
    known: Mapping[str, pa.DataType] = field(default_factory=dict)

    def files(self) -> list[str]:
        """Return all files, those of folders and patterns by name.

        Raises
        ------
        InvalidRequestError
            There is none.
        """
        found = [file for path in self.paths for file in self._below(path)]
        if len(found) == 0:
            raise InvalidRequestError(f"there are no files of rows in {', '.join(self.paths)}")
        return found

    def open(self, path: str) -> SourceFile:
        """Open a file."""
        return SourceFile(path, self.storage_options)

    def format_of(self, path: str) -> SourceFormat:
        """Return the format of a file.

        Raises
        ------
        InvalidRequestError
            Its name tells none.
        """
        name = self.form if self.form is not None else _ENDINGS.get(_ending(path))
        if name not in FORMATS:
            raise InvalidRequestError(
                f"{path}: the name tells no format; names end in {', '.join(_ENDINGS)}, or give"
                f" one of {', '.join(FORMATS)}"
            )
        if name == "parquet":
            return Parquet()
        if name == "arrow":
            return ArrowFile()
        types = {column: readable(kind) for column, kind in self._text_types.items()}
        if name == "json":
            return JsonLines(types)
        default = "\t" if name == "tsv" else ","
        return Csv(types, default if self.delimiter is None else self.delimiter)

    def schema(self, files: Sequence[str]) -> pa.Schema:
        """Return the columns of all files, as they are read; of very many, of a hundred of them.

        Raises
        ------
        InvalidRequestError
            A file cannot be read or has a column twice, or columns of one name differ in type.
        """
        sampled = files[:: max(1, len(files) // _MOST_SAMPLED)]
        schemas = [self._schema_of(path) for path in sampled]
        try:
            found = pa.unify_schemas(schemas, promote_options="permissive")
        except pa.ArrowException as error:
            raise InvalidRequestError(
                f"the files do not go together: {error}; give the type by --type"
            ) from error
        if any(isinstance(self.format_of(path), Csv | JsonLines) for path in sampled):
            return pa.schema([self._settled(each) for each in found], metadata=found.metadata)
        return found

    def with_given(self, schema: pa.Schema, files: Sequence[str]) -> pa.Schema:
        """Add columns that types are given for: JSON may have them further down in a file.

        Raises
        ------
        InvalidRequestError
            No file is JSON, so none has them.
        """
        further = {name: kind for name, kind in self.types.items() if name not in schema.names}
        if further and not any(isinstance(self.format_of(path), JsonLines) for path in files):
            raise InvalidRequestError(
                f"--type names {', '.join(map(repr, further))}, the files have"
                f" {', '.join(map(repr, schema.names))}"
            )
        for name, kind in further.items():
            schema = schema.append(pa.field(name, readable(kind)))
        return schema

    def declared(self, schema: pa.Schema) -> pa.Schema:
        """Return columns as they are to become, where types are given for them."""
        fields = [field.with_type(self.types.get(field.name, field.type)) for field in schema]
        return pa.schema(fields, metadata=schema.metadata)

    def with_known(self, types: Mapping[str, pa.DataType]) -> Sources:
        """Return the same files, with the types of a table for columns that are given none."""
        return replace(self, known=types)

    def pieces(self, files: Sequence[str], max_rows: int) -> Iterator[Piece]:
        """Cut all files into pieces."""
        for path in files:
            yield from self.format_of(path).pieces(self.open(path), max_rows)

    @property
    def _text_types(self) -> dict[str, pa.DataType]:
        return {**self.known, **self.types}

    def _schema_of(self, path: str) -> pa.Schema:
        """Return the columns of a file; what text holds is read as it is written."""
        form = self.format_of(path)
        found = form.schema(self.open(path))
        twice = next((name for name in found.names if found.names.count(name) > 1), None)
        if twice is not None:
            raise InvalidRequestError(f'{path} has several columns "{twice}"; name them apart')
        return found if isinstance(form, Csv | JsonLines) else self.declared(found)

    def _settled(self, field: pa.Field) -> pa.Field:
        """Give a column that is empty in all beginnings its known type, or take it for text."""
        if not pa.types.is_null(field.type):
            return field
        return field.with_type(readable(self._text_types.get(field.name, pa.string())))

    def _below(self, path: str) -> list[str]:
        is_remote = "://" in path
        if not is_remote and any(char in path for char in _MAGIC) and not Path(path).exists():
            return _matching(path)
        is_folder = path.endswith("/") if is_remote else Path(path).is_dir()
        if not is_folder:
            return [path]
        store = open_dataset_store(path, self.storage_options)
        root = path.rstrip("/")
        return [
            f"{root}/{meta.path}"
            for meta in store.list_tree("")
            if not _is_hidden(meta.path)
            and (self.form is not None or _ending(meta.path) in _ENDINGS)
        ]


def packed(pieces: Iterator[Piece], max_rows: int) -> Iterator[list[Piece]]:
    """Join neighbouring pieces to items of about as many rows; those that have more stay alone.

    Examples
    --------
    >>> from pipeline.source_formats import Piece
    >>> pieces = [Piece("a", 0, 1, rows, 0, 9) for rows in (4, 4, 9, 1)]
    >>> [[piece.num_rows for piece in item] for item in packed(iter(pieces), 8)]
    [[4, 4], [9], [1]]
    """
    item: list[Piece] = []
    rows = 0
    for piece in pieces:
        if item and rows + piece.num_rows > max_rows:
            yield item
            item, rows = [], 0
        item.append(piece)
        rows += piece.num_rows
    if item:
        yield item


def _matching(pattern: str) -> list[str]:
    parts = Path(pattern).parts
    fixed = next(n for n, part in enumerate(parts) if any(char in part for char in _MAGIC))
    found = Path(*parts[:fixed]).glob(str(Path(*parts[fixed:])))
    return sorted(str(file) for file in found if file.is_file())


def _ending(path: str) -> str:
    suffixes = [each.lower() for each in PurePosixPath(path).suffixes]
    plain = [each for each in suffixes if each not in COMPRESSIONS]
    return plain[-1] if plain else ""


def _is_hidden(path: str) -> bool:
    return any(part.startswith(_HIDDEN) for part in PurePosixPath(path).parts)
