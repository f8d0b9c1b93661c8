"""Options of the data source ``lance_py``, as Spark hands them over: texts by lower-case names.

==================== ==========================================================================
``path``             the dataset; what is given to ``load`` and ``save``
``version``          number of the version to read; the newest if left out
``tag``, ``branch``  a tag, or the branch whose newest or given version is read
``columns``          columns to read, between commas or as a JSON list; ``_rowid`` is one
``filter``           rows to read, as a filter of the dataset
``partitionRows``    rows of a task that reads, about
``pushFilters``      ``true``: filters of Spark are judged by the dataset, see below
``vectors``          columns that become vectors of a new dataset: ``embedding=768,other=64``
``maxRowsPerFile``   rows of a new fragment
``dataStorageVersion``, ``stableRowIds``  of a new dataset
``jobId``            names a write that is to be done once, however often it is started
``queryId``          names a stream; Spark's own name of the query if left out
``storage.NAME``     option ``NAME`` of the object store
==================== ==========================================================================

Filters of Spark are handed down only on demand, and for frames that one query uses: Spark 4.3 keeps
what it was told for one query of a frame and reads the same rows for the next ones, which then lack
rows, without an error; so do both sides of a union or join (observed). ``filter`` is safe.

Of a table that SQL has made, ``CREATE TABLE t USING lance_py OPTIONS (path '...')``, Spark 4.3
forgets the options once it knows the columns (observed). So these carry them, but for those of the
store, which may be secret: they come from the environment then. What is written into such a table
has other columns, so the path is given again: ``INSERT INTO t WITH (path = '...') SELECT ...``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from pipeline.worker import dataset_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.dataset import Dataset

TABLE_OPTIONS = "lance.options"
"""Key of the first column's metadata in Spark: options of a table in SQL, as JSON."""

STORAGE = "storage."
"""What names of options of the object store begin with."""

_PARTITION_ROWS = 1 << 20
_ALIKE = 0.8
_OPTIONS = (
    *("path", "version", "tag", "branch", "columns", "filter", "partitionrows", "pushfilters"),
    *("vectors", "maxrowsperfile", "datastorageversion", "stablerowids", "jobid", "queryid"),
)
_OF_READS = ("path", "version", "tag", "branch", "columns", "filter", "partitionrows")
_HADOOP_FILE = re.compile(r"file:/(?!/)")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read; see the options of the module."""

    uri: str
    storage_options: tuple[tuple[str, str], ...]
    version: int | str | None
    branch: str | None
    columns: tuple[str, ...] | None
    filter: str | None
    partition_rows: int
    pushes_filters: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ReadOptions:
        """Read options.

        Raises
        ------
        InvalidRequestError
            There is no path, or an option is not what it has to be.
        """
        check_spelling(options)
        version: int | str | None = _number(options, "version")
        tag = options.get("tag")
        if tag is not None and version is not None:
            raise InvalidRequestError("both version and tag are given; give one of them")
        return cls(
            uri=path_of(options),
            storage_options=storage_options_of(options),
            version=version if tag is None else tag,
            branch=options.get("branch"),
            columns=_names(options.get("columns")),
            filter=options.get("filter"),
            partition_rows=_number(options, "partitionrows", _PARTITION_ROWS) or 1,
            pushes_filters=flag_of(options, "pushfilters"),
        )


@dataclass(frozen=True, slots=True)
class OpenedVersion:
    """A version of a dataset that every worker opens; small."""

    uri: str
    storage_options: tuple[tuple[str, str], ...]
    version: int
    branch: str | None

    def dataset(self) -> Dataset:
        """Open it, with the cache of this process."""
        return dataset_at(
            self.uri, self.version, dict(self.storage_options) or None, branch=self.branch
        )


def check_spelling(options: Mapping[str, str]) -> None:
    """Refuse an option that is nearly one of ours; Spark hands over others of its own."""
    for name in options:
        close = get_close_matches(name, _OPTIONS, 1, _ALIKE)
        if name not in _OPTIONS and len(close) > 0:
            raise InvalidRequestError(f"unknown option {name!r}; did you mean {close[0]!r}?")


def check_write_options(options: Mapping[str, str]) -> None:
    """Refuse options that rows are read by, and misspelt ones: they would have no effect.

    Raises
    ------
    InvalidRequestError
        There is one.
    """
    check_spelling(options)
    reading = [name for name in _OF_READS if name != "path" and name in options]
    if len(reading) > 0:
        raise InvalidRequestError(
            f"{', '.join(reading)}: for reading only; rows are written to the newest version at the"
            " path"
        )


def path_of(options: Mapping[str, str]) -> str:
    """Return the place of the dataset, or raise ``InvalidRequestError``."""
    path = options.get("path")
    if path is None:
        raise InvalidRequestError(
            'no dataset is named; give load("/data/a.lance"), or a path, in SQL too where rows are'
            " written: INSERT INTO t WITH (path = '/data/a.lance') ...; of tables that are created"
            " with columns or AS SELECT, Spark 4.3 forgets it: write the dataset first, then CREATE"
            " TABLE t USING lance_py OPTIONS (path '/data/a.lance')"
        )
    # The path of a table in SQL comes as Hadoop writes it.
    return path.removeprefix("file:") if _HADOOP_FILE.match(path) is not None else path


def table_options(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options that the columns of a table in SQL have to carry; None = it is no table.

    Spark gives those of tables more than users do, the provider among them.
    """
    if "provider" not in options:
        return None
    return {name: value for name, value in options.items() if name in _OF_READS}


def storage_options_of(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the options of the object store, as pairs."""
    return tuple(
        sorted(
            (name.removeprefix(STORAGE), value)
            for name, value in options.items()
            if name.startswith(STORAGE)
        )
    )


def vectors_of(options: Mapping[str, str]) -> dict[str, int]:
    """Return the columns that are to be vectors, with their dimensions.

    Examples
    --------
    >>> vectors_of({"vectors": "a=3, b=4"})
    {'a': 3, 'b': 4}
    """
    dimensions = {}
    for each in _split(options.get("vectors", "")):
        name, equals, number = each.rpartition("=")
        if equals == "" or not number.strip().isdecimal() or int(number) == 0:
            raise InvalidRequestError(f"vectors has {each!r}; give columns as embedding=768")
        dimensions[name.strip()] = int(number)
    return dimensions


def flag_of(options: Mapping[str, str], name: str) -> bool:
    """Return an option that is true or false; false if left out."""
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise InvalidRequestError(f"{name} is {text!r}; give true or false")
    return text == "true"


def number_of(options: Mapping[str, str], name: str, default: int) -> int:
    """Return an option that is a number of at least 1."""
    found = _number(options, name)
    return default if found is None else found


def _number(options: Mapping[str, str], name: str, default: int | None = None) -> int | None:
    text = options.get(name)
    if text is None:
        return default
    if not text.isdecimal() or int(text) == 0:
        raise InvalidRequestError(f"{name} is {text!r}; give a number of at least 1")
    return int(text)


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    found: object = _split(text)
    if text.lstrip().startswith("["):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise InvalidRequestError(f"columns is {text!r}, no JSON list: {error}") from None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidRequestError(f"columns is {text!r}; give a list of names")
    if len(found) == 0:
        raise InvalidRequestError('columns names none; to count rows, name "_rowid"')
    return tuple(found)


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip() != ""]
