"""The live rows that pass a filter: those that indices name, and those found by reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.expr.walk import columns_of
from lance_core.ids import FragmentId
from lance_core.query.filter_steps import FilterSteps, LookupStep, ReadStep
from lance_core.query.judged_rows import RowJudge
from lance_core.query.lookup_text import lookup_text
from lance_core.query.row_masks import RowMask
from lance_core.row_set import count, empty_words, words_of_bitmap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.expr.tree import Node
    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.query.deadline import Deadline
    from lance_core.query.index_filter import AnsweredFragments, IndexAnswer, LookupFacts
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

_NO_ROWS = BitMap()


class PassingRows:
    """What is known of a filter at one version, and means to find out the rest.

    Parameters
    ----------
    files, snapshot
        Opened files, and the version.
    test
        The filter.
    answer
        What indices say about it.
    covered_only
        Leave out fragments that the indices do not cover which the filter asks, if it asks any.
    """

    def __init__(
        self,
        files: TableFiles,
        snapshot: Snapshot,
        test: Node,
        answer: IndexAnswer,
        *,
        covered_only: bool,
    ) -> None:
        self._files = files
        self._snapshot = snapshot
        self._test = test
        self._answer = answer
        self._left_out = BitMap()
        if covered_only and answer.groups:
            self._left_out = BitMap(snapshot.fragments_by_id) - answer.covered

    def masks(
        self, fragment_ids: Sequence[FragmentId], deadline: Deadline
    ) -> dict[FragmentId, RowMask]:
        """Return the live rows of some fragments that pass, over their row offsets."""
        wanted = BitMap(fragment_ids) - self._left_out
        found = {each: self._none_of(each) for each in fragment_ids if each in self._left_out}
        for group in self._answer.groups:
            own = [FragmentId(each) for each in group.fragments & wanted]
            if own:
                deadline.check("filtering rows")
                found.update(self._of_group(group, own, deadline))
        unknown = [FragmentId(each) for each in wanted - self._answer.fragments]
        passes = RowJudge(self._files, self._snapshot, self._test).of_fragments(unknown, deadline)
        found.update({each: _mask(_packed(flags)) for each, flags in passes.items()})
        return found

    def named(self, fragment_id: FragmentId) -> BitMap | None:
        """Return the live rows of a fragment that pass, None unless indices name just these."""
        if fragment_id in self._left_out:
            return _NO_ROWS
        group = self._group_of(fragment_id)
        if group is None or group.rest is not None:
            return None
        rows = group.answer.certain.get(fragment_id)
        if rows is None:
            return _NO_ROWS
        fragment = self._snapshot.fragments_by_id[fragment_id]
        deleted = self._files.deleted(self._snapshot, fragment)
        return rows - deleted if deleted else rows

    def is_told(self, fragment_id: FragmentId) -> bool:
        """Tell whether no more than half the rows of a fragment are left to be looked at."""
        if fragment_id in self._left_out:
            return True
        group = self._group_of(fragment_id)
        if group is None:
            return False
        num_unsure = len(group.answer.unsure.get(fragment_id, _NO_ROWS))
        return 2 * num_unsure <= self._snapshot.fragments_by_id[fragment_id].physical_rows

    def _group_of(self, fragment_id: FragmentId) -> AnsweredFragments | None:
        groups = self._answer.groups
        return next((each for each in groups if fragment_id in each.fragments), None)

    def steps(self) -> FilterSteps:
        """Describe how the rows of all fragments are found."""
        fragments = self._snapshot.fragments_by_id
        unknown = BitMap(fragments) - self._answer.fragments - self._left_out
        num_rows = sum(
            self._files.num_live_rows(self._snapshot, fragments[FragmentId(each)])
            for each in unknown
        )
        return FilterSteps(
            tuple(map(_lookup_step, self._answer.lookups)),
            tuple(self._rechecks()),
            ReadStep(columns_of(self._test), len(unknown), num_rows) if unknown else None,
            len(self._left_out),
            self._answer.skipped,
        )

    def _rechecks(self) -> Iterator[ReadStep]:
        for group in self._answer.groups:
            if group.rest is not None:
                unsure = group.answer.unsure
                num_rows = [len(unsure.get(each, ())) for each in group.fragments - self._left_out]
                num_fragments = sum(each > 0 for each in num_rows)
                yield ReadStep(columns_of(group.rest), num_fragments, sum(num_rows))

    def _of_group(
        self, group: AnsweredFragments, fragment_ids: Sequence[FragmentId], deadline: Deadline
    ) -> Iterator[tuple[FragmentId, RowMask]]:
        fragments = self._snapshot.fragments_by_id
        certain = self._live(group.answer.certain, fragment_ids)
        found = {
            each: words_of_bitmap(certain.get(each, _NO_ROWS), fragments[each].physical_rows)
            for each in fragment_ids
        }
        if group.rest is not None:
            unsure = self._live(group.answer.unsure, fragment_ids)
            judge = RowJudge(self._files, self._snapshot, group.rest)
            for each, flags in judge.of_rows(unsure, deadline).items():
                found[each] |= _packed(flags)
        for each, words in found.items():
            yield each, _mask(words)

    def _live(self, rows: FragmentRows, fragment_ids: Iterable[int]) -> dict[FragmentId, BitMap]:
        """Return those rows of some fragments that are not deleted."""
        fragments = self._snapshot.fragments_by_id
        live = {
            each: rows[each] - self._files.deleted(self._snapshot, fragments[each])
            for each in map(FragmentId, fragment_ids)
            if each in rows
        }
        return {each: bitmap for each, bitmap in live.items() if bitmap}

    def _none_of(self, fragment_id: FragmentId) -> RowMask:
        return _mask(empty_words(self._snapshot.fragments_by_id[fragment_id].physical_rows))


def _lookup_step(facts: LookupFacts) -> LookupStep:
    return LookupStep(
        lookup_text(facts.leaf, facts.column),
        facts.index_names,
        facts.kinds,
        facts.num_segments,
        facts.num_fragments,
        facts.num_rows,
        facts.is_exact,
    )


def _packed(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    return np.packbits(flags, bitorder="little").view(np.uint64)


def _mask(words: NDArray[np.uint64]) -> RowMask:
    return RowMask(words, count(words))
