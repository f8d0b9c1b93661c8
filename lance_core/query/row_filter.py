"""A filter over the rows of one version, evaluated once: which rows pass, as packed bits."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lance_core.cache.keys import CacheKey
from lance_core.expr.filter import parse_filter
from lance_core.expr.limits import FilterLimits
from lance_core.ids import FragmentId
from lance_core.query.residency import NotResidentError
from lance_core.query.row_masks import RowMask, mask_passing
from lance_core.row_address import fragment_of, offset_of
from lance_core.row_set import count, num_words
from lance_core.scan.projection import OWN_ADDRESS, resolve_projection, with_address
from lance_core.scan.rows import scan_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from lance_core.expr.filter import Filter
    from lance_core.expr.limits import Check
    from lance_core.query.deadline import Deadline
    from lance_core.query.row_masks import AddressRuns
    from lance_core.query.session import Session
    from lance_core.schema.tree import LanceSchema
    from lance_core.table.snapshot import Snapshot

LIMITS = FilterLimits(characters=1 << 20, comparisons=20_000)
"""So large that nobody who writes a filter finds them, so small that none takes whole seconds."""
_DIGEST_BYTES = 16
_BATCH_ROWS = 1 << 16
_ROWS_AT_ONCE = 1 << 22
"""Rows that are judged together, unless a fragment alone has more; each takes a byte so long."""


class RowFilter:
    """Which rows of a version pass a filter; kept in the cache, fragment by fragment.

    Parameters
    ----------
    session
        Cache and opened files.
    snapshot
        The version.
    text
        The filter, see `lance_core.expr`.
    deadline
        Looked at while it is read.
    params
        Values for the ``$name``s of the text.

    Attributes
    ----------
    filter
        The filter, bound to the columns.

    Raises
    ------
    InvalidRequestError
        It is no filter, names a column that the table lacks, or a literal does not fit its column;
        tells at which character. Or it is too large.
    """

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        text: str,
        deadline: Deadline,
        *,
        params: Mapping[str, object] | None = None,
    ) -> None:
        self._session = session
        self._snapshot = snapshot
        self.filter = read_filter(text, snapshot.schema, deadline, params=params)
        self._projection = with_address(resolve_projection(snapshot.schema, self.filter.columns))
        # Texts may be long, and the cache does not count what its keys take.
        self._digest = hashlib.blake2b(self.text.encode(), digest_size=_DIGEST_BYTES).digest()

    @property
    def text(self) -> str:
        """The filter; equal texts have the same rows."""
        return self.filter.text

    def key(self, *parts: Hashable) -> CacheKey:
        """Return a key for what the cache keeps of this filter."""
        snapshot = self._snapshot
        name = (snapshot.incarnation, self._digest, *parts)
        return CacheKey("filter", snapshot.scheduler.store.key, name)

    def require_resident(self, fragment_ids: Collection[FragmentId]) -> None:
        """Raise ``NotResidentError`` unless `passing` would read nothing."""
        if not all(self.key(each) in self._session.cache for each in fragment_ids):
            raise NotResidentError("rows have to be filtered")

    def passing(
        self, fragment_ids: Collection[FragmentId], deadline: Deadline
    ) -> Mapping[FragmentId, RowMask]:
        """Return the live rows of some fragments that pass, as bitsets over row offsets.

        Those that were not judged yet are. Only the columns that the filter names are read.
        """
        found: dict[FragmentId, RowMask] = {}
        for some in self._pieces(fragment_ids):
            by_key: dict[Hashable, FragmentId] = {self.key(each): each for each in some}
            rows = self._session.cache.get_or_load_many(
                list(by_key),
                partial(self._judge, by_key, deadline),
            )
            found.update(zip(some, rows, strict=True))
        return found

    def _pieces(self, fragment_ids: Collection[FragmentId]) -> Iterator[list[FragmentId]]:
        piece: list[FragmentId] = []
        num_rows = 0
        for fragment_id in fragment_ids:
            piece.append(fragment_id)
            num_rows += self._snapshot.fragments_by_id[fragment_id].physical_rows
            if num_rows >= _ROWS_AT_ONCE:
                yield piece
                piece, num_rows = [], 0
        if piece:
            yield piece

    def mask(
        self,
        name: Hashable,
        live: RowMask,
        runs: AddressRuns,
        fragment_ids: Collection[FragmentId],
        deadline: Deadline,
        *,
        resident_only: bool,
    ) -> RowMask:
        """Return those rows of a bitset that pass; kept in the cache.

        Parameters
        ----------
        name
            Tells bitsets of one version apart.
        live, runs
            The bitset, and where all rows with an ordinal lie.
        fragment_ids
            The fragments that they lie in.
        resident_only
            Raise ``NotResidentError`` rather than judge rows.
        """
        key = self.key("mask", name)
        if resident_only and key not in self._session.cache:
            self.require_resident(fragment_ids)
        return self._session.cache.get_or_load(
            key, lambda: mask_passing(live.words, runs, self.passing(fragment_ids, deadline))
        )

    def _judge(
        self,
        fragments_by_key: Mapping[Hashable, FragmentId],
        deadline: Deadline,
        missing: Sequence[Hashable],
    ) -> list[RowMask]:
        fragment_ids = [fragments_by_key[key] for key in missing]
        fragments = [self._snapshot.fragments_by_id[each] for each in fragment_ids]
        passes = {each.id: _padded_flags(each.physical_rows) for each in fragments}
        batches = scan_rows(
            self._session.files,
            self._snapshot,
            self._projection,
            fragment_ids=passes,
            batch_rows=_BATCH_ROWS,
        )
        for batch in batches:
            deadline.check("filtering rows")
            addresses = batch[OWN_ADDRESS].to_numpy()
            of_fragment = passes[
                FragmentId(int(fragment_of(addresses[:1])[0]))
            ]  # a batch lies in one
            holds = self.filter.holds(batch, checking(deadline))
            of_fragment[offset_of(addresses)] = holds.to_numpy(zero_copy_only=False)
        return [_packed(passes[each]) for each in fragment_ids]


def read_filter(
    text: str,
    schema: LanceSchema,
    deadline: Deadline,
    *,
    params: Mapping[str, object] | None = None,
    others: Sequence[pa.Field] = (),
) -> Filter:
    """Parse the filter of a query, which strangers may have written.

    Parameters
    ----------
    text
        The filter.
    schema
        Of the table.
    deadline
        Looked at while it is read.
    params
        Values for its ``$name``s.
    others
        Columns beside those of the table that it may name.

    Raises
    ------
    InvalidRequestError
        See `lance_core.expr.filter.parse_filter`.
    """
    check = partial(deadline.check, "reading the filter")
    return parse_filter(text, schema, params=params, others=others, limits=LIMITS, check=check)


def checking(deadline: Deadline) -> Check:
    """Return what is called while rows are judged."""
    return partial(deadline.check, "filtering rows")


def _padded_flags(num_rows: int) -> NDArray[np.bool_]:
    return np.zeros(num_words(num_rows) * 64, np.bool_)


def _packed(flags: NDArray[np.bool_]) -> RowMask:
    words = np.packbits(flags, bitorder="little").view(np.uint64)
    return RowMask(words, count(words))
