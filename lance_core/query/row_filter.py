"""A filter over the rows of one version, evaluated once: which rows pass, as packed bits."""

from __future__ import annotations

import hashlib
from functools import cache, partial
from typing import TYPE_CHECKING

from lance_core.cache.keys import CacheKey
from lance_core.errors import CorruptFileError
from lance_core.expr.filter import parse_filter
from lance_core.expr.limits import FilterLimits
from lance_core.query.filter_steps import FilterSteps
from lance_core.query.index_filter import NOTHING_SAID
from lance_core.query.indexed_filter import IndexUse, ask_version
from lance_core.query.passing_rows import PassingRows
from lance_core.query.residency import NotResidentError
from lance_core.query.row_masks import mask_passing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from lance_core.expr.filter import Filter
    from lance_core.expr.limits import Check
    from lance_core.ids import FragmentId
    from lance_core.query.deadline import Deadline
    from lance_core.query.index_filter import IndexAnswer
    from lance_core.query.row_masks import AddressRuns, RowMask
    from lance_core.query.session import Session
    from lance_core.schema.tree import LanceSchema
    from lance_core.table.snapshot import Snapshot

LIMITS = FilterLimits(characters=1 << 20, comparisons=5_000)
"""So large that nobody who writes a filter finds them, so small that none takes whole seconds."""
_DIGEST_BYTES = 16
_ROWS_AT_ONCE = 1 << 22
"""Rows that are asked about together, unless a fragment alone has more."""
_JUDGED_ELSEWHERE = FilterSteps((), (), None, 0, ())


class RowFilter:
    """Which rows of a version pass a filter; kept in the cache, fragment by fragment.

    Indices are asked first, and only what they leave open is read.

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
    covered_only
        Leave out fragments that the indices do not cover which the filter asks, if it asks any.
    index_use
        Whether indices are asked.

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
        covered_only: bool = False,
        index_use: IndexUse = IndexUse.ALWAYS,
    ) -> None:
        self._session = session
        self._snapshot = snapshot
        self.filter = read_filter(text, snapshot.schema, deadline, params=params)
        self._covered_only = covered_only
        self._index_use = index_use
        # Texts may be long, and the cache does not count what its keys take.
        self._digest = hashlib.blake2b(self.text.encode(), digest_size=_DIGEST_BYTES).digest()

    @property
    def text(self) -> str:
        """The filter; equal texts have the same rows."""
        return self.filter.text

    def key(self, *parts: Hashable) -> CacheKey:
        """Return a key for what the cache keeps of this filter."""
        snapshot = self._snapshot
        is_scanned = self._index_use is IndexUse.NEVER
        name = (snapshot.incarnation, self._digest, self._covered_only, is_scanned, *parts)
        return CacheKey("filter", snapshot.scheduler.store.key, name)

    def require_resident(self, fragment_ids: Collection[FragmentId]) -> None:
        """Raise ``NotResidentError`` unless `passing` would read nothing."""
        if not all(self.key(each) in self._session.cache for each in fragment_ids):
            raise NotResidentError("rows have to be filtered")

    def passing(
        self, fragment_ids: Collection[FragmentId], deadline: Deadline
    ) -> Mapping[FragmentId, RowMask]:
        """Return the live rows of some fragments that pass, as bitsets over row offsets.

        Those that were not judged yet are: by indices, and where these do not tell by reading the
        columns that the filter names.

        Raises
        ------
        CorruptFileError
            A file is damaged or missing.
        """
        rows = cache(partial(self.rows, deadline))  # so that indices are asked once at most
        found: dict[FragmentId, RowMask] = {}
        for some in self._judged(fragment_ids, rows, deadline):
            found.update(some)
        return found

    def keep(self, passing: Mapping[FragmentId, RowMask]) -> None:
        """Take rows that another process has judged for those that pass.

        They are judged anew where the cache has dropped them.

        Parameters
        ----------
        passing
            As `passing` returned them there, of all fragments of the version.
        """
        masks: dict[Hashable, RowMask] = {self.key(each): mask for each, mask in passing.items()}
        cache = self._session.cache
        cache.get_or_load_many(list(masks), lambda missing: [masks[key] for key in missing])
        cache.get_or_load(self.key("steps"), lambda: _JUDGED_ELSEWHERE)

    def count(self, fragment_ids: Collection[FragmentId], deadline: Deadline) -> int:
        """Return how many live rows of some fragments pass; reads and errors as `passing`.

        Rows that indices name are counted as they are.
        """
        rows = self.rows(deadline)
        named = {each: rows.named(each) for each in fragment_ids}
        total = sum(len(each) for each in named.values() if each is not None)
        others = [each for each in fragment_ids if named[each] is None]
        return total + sum(
            mask.num_rows
            for some in self._judged(others, lambda: rows, deadline)
            for mask in some.values()
        )

    def rows(self, deadline: Deadline) -> PassingRows:
        """Return what is known of the rows; asks indices, errors as `passing`.

        It holds what indices said: keep it for one query, not longer.
        """
        return PassingRows(
            self._session.files,
            self._snapshot,
            self.filter.expression,
            self._answer(deadline),
            covered_only=self._covered_only,
        )

    def steps(self, deadline: Deadline, *, resident_only: bool = False) -> FilterSteps:
        """Describe how `passing` finds the rows of all fragments; asks indices for that.

        With ``resident_only`` a ``NotResidentError`` is raised if this was not done before.
        """
        key = self.key("steps")
        if resident_only and key not in self._session.cache:
            raise NotResidentError("indices have to be asked")
        return self._session.cache.get_or_load(key, lambda: self.rows(deadline).steps())

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

    def _judged(
        self,
        fragment_ids: Collection[FragmentId],
        rows: Callable[[], PassingRows],
        deadline: Deadline,
    ) -> Iterator[Mapping[FragmentId, RowMask]]:
        for some in self._pieces(fragment_ids):
            by_key: dict[Hashable, FragmentId] = {self.key(each): each for each in some}
            masks = self._session.cache.get_or_load_many(
                list(by_key), partial(self._judge, by_key, rows, deadline)
            )
            yield dict(zip(some, masks, strict=True))

    def _judge(
        self,
        by_key: Mapping[Hashable, FragmentId],
        rows: Callable[[], PassingRows],
        deadline: Deadline,
        missing: Sequence[Hashable],
    ) -> list[RowMask]:
        wanted = [by_key[key] for key in missing]
        masks = rows().masks(wanted, deadline)
        return [masks[each] for each in wanted]

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

    def _answer(self, deadline: Deadline) -> IndexAnswer:
        """Return what indices say; they are asked anew each time where some are damaged."""
        if self._index_use is IndexUse.NEVER:
            return NOTHING_SAID
        try:
            return self._session.cache.get_or_load(
                self.key("indices"),
                lambda: ask_version(
                    self._session, self._snapshot, self.filter.expression, deadline
                ),
            )
        except CorruptFileError:
            if self._index_use is IndexUse.ALWAYS:
                raise
            return NOTHING_SAID


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
