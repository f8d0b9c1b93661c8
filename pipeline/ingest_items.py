"""What tasks of an ingest get, what they do, and what they give back."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import CorruptFileError
from lance_core.proto import table_pb2
from pipeline.convert import Converter, OnBadVector
from pipeline.ingest_target import Place, Target, write_rows
from pipeline.source_formats import Piece
from pipeline.worker import report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipeline.ingest_sources import Sources

_BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class Item:
    """Work of one task.

    Parameters
    ----------
    pieces
        Of files, in their order; there may be none.
    read
        Columns as the files have them.
    target
        What they become.
    """

    pieces: tuple[Piece, ...]
    read: pa.Schema
    target: Target

    @property
    def num_rows(self) -> int:
        """About how many rows there are."""
        return sum(piece.num_rows for piece in self.pieces)

    def to_bytes(self) -> bytes:
        """Return the message of it."""
        rows = [[p.path, p.start, p.end, p.num_rows, p.first_row, p.size] for p in self.pieces]
        read = base64.b64encode(self.read.serialize()).decode()
        return json.dumps({"pieces": rows, "read": read, "target": self.target.to_json()}).encode()

    @classmethod
    def of(cls, data: bytes) -> Item:
        """Return what `to_bytes` made."""
        try:
            found = json.loads(data)
            read = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found["read"])))
            pieces = tuple(Piece(*row) for row in found["pieces"])
            return cls(pieces, read, Target.of_json(found["target"]))
        except (ValueError, TypeError, KeyError, pa.ArrowException) as error:
            raise CorruptFileError("plan.json", f"is no plan of an ingest: {error}") from error


@dataclass(frozen=True, slots=True)
class Written:
    """What was written of an item, or of a partition of a frame.

    Parameters
    ----------
    target
        What the rows became.
    fragments
        New ones, in order; none if there were no rows.
    num_bad, num_dropped
        Bad vectors, and rows left out.
    """

    target: Target
    fragments: tuple[table_pb2.DataFragment, ...]
    num_bad: int = 0
    num_dropped: int = 0

    @property
    def num_rows(self) -> int:
        """Rows that were written."""
        return sum(fragment.physical_rows for fragment in self.fragments)

    def facts(self) -> dict[str, int]:
        """Return what people are told."""
        return {
            "rows": self.num_rows,
            "fragments": len(self.fragments),
            "bad_vectors": self.num_bad,
            "dropped_rows": self.num_dropped,
        }

    def to_bytes(self) -> bytes:
        """Return the message of it."""
        texts = [base64.b64encode(each.SerializeToString()).decode() for each in self.fragments]
        return json.dumps(
            {
                "target": self.target.to_json(),
                "fragments": texts,
                "bad": self.num_bad,
                "dropped": self.num_dropped,
            }
        ).encode()

    @classmethod
    def of(cls, data: bytes) -> Written:
        """Return what `to_bytes` made."""
        try:
            found = json.loads(data)
            fragments = tuple(
                table_pb2.DataFragment.FromString(base64.b64decode(text))
                for text in found["fragments"]
            )
            target = Target.of_json(found["target"])
            return cls(target, fragments, int(found["bad"]), int(found["dropped"]))
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptFileError("out", f"holds no result of an ingest: {error}") from error


def joined(parts: Iterable[Written]) -> Written:
    """Return all parts of one target, of which there is one at least, as one in their order."""
    every = list(parts)
    return Written(
        every[0].target,
        tuple(fragment for part in every for fragment in part.fragments),
        sum(part.num_bad for part in every),
        sum(part.num_dropped for part in every),
    )


def write_item(
    place: Place, sources: Sources, on_bad: OnBadVector, order: Sequence[str], data: bytes
) -> bytes:
    """Write the rows of an item to fragments; runs in a worker.

    Where there are columns to order them by, all rows of the item are in memory.
    """
    item = Item.of(data)
    converter = Converter(item.target.aim, on_bad)
    rows = converted(sources, item, converter)
    fragments = write_rows(place, item.target, _ordered(rows, order) if order else rows)
    made = Written(item.target, tuple(fragments), converter.num_bad, converter.num_dropped)
    return made.to_bytes()


def converted(sources: Sources, item: Item, converter: Converter) -> Iterator[pa.RecordBatch]:
    """Read the rows of an item and convert them; says how far it is."""
    done = 0
    for piece in item.pieces:
        form, file = sources.format_of(piece.path), sources.open(piece.path)
        piece.check(file)
        row = 0
        for batch in form.batches(file, piece, item.read):
            yield converter.convert(batch, partial(_place_of, piece, row))
            row += batch.num_rows
            report(done + row)
        done += row


def _ordered(rows: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    batches = list(rows)
    if len(batches) == 0:
        return
    table = pa.Table.from_batches(batches)
    places = pc.sort_indices(table, [(name, "ascending") for name in columns])
    for start in range(0, len(places), _BATCH_ROWS):
        yield from table.take(places.slice(start, _BATCH_ROWS)).combine_chunks().to_batches()


def _place_of(piece: Piece, first: int, row: int) -> str:
    return piece.place(first + row)
