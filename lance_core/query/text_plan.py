"""From a text query and the indices on its columns to a plan: pure, no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.index.text.queries import CombinedFieldsQuery, leaves_of
from lance_core.query.plan import TextLeaf, TextPlan, TextSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.index.text.queries import MatchQuery, PhraseQuery, TextNode
    from lance_core.query.plan import IndexChoice, Prefilter
    from lance_core.query.text_request import TextQuery

NO_INDEX = (
    "no column of the table has an inverted index: name the column to look in, or build one with"
    ' create_index(column, "INVERTED")'
)

NOT_KEPT_UP = (
    "an index whose documents are elements of lists is not kept up to date here, neither when"
    " fragments are compacted nor by optimize_indices: create it again with pylance"
)


def columns_of_leaf(
    leaf: MatchQuery | PhraseQuery | CombinedFieldsQuery, default_columns: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns that a part of a query looks in.

    Raises
    ------
    InvalidRequestError
        It names none, and none has an index.
    """
    if isinstance(leaf, CombinedFieldsQuery):
        return leaf.columns
    if leaf.column is not None:
        return (leaf.column,)
    if len(default_columns) == 0:
        raise InvalidRequestError(NO_INDEX)
    return tuple(default_columns)


def names_no_column(query: TextNode) -> bool:
    """Tell whether a part of a query leaves open which column it looks in."""
    return any(
        not isinstance(leaf, CombinedFieldsQuery) and leaf.column is None
        for leaf in leaves_of(query)
    )


def text_leaves(query: TextNode, default_columns: Sequence[str]) -> tuple[TextLeaf, ...]:
    """Return the searches that a query needs, each once; errors as `columns_of_leaf`."""
    found: dict[object, TextLeaf] = {}
    for leaf in leaves_of(query):
        columns = columns_of_leaf(leaf, default_columns)
        groups = [columns] if isinstance(leaf, CombinedFieldsQuery) else [(c,) for c in columns]
        for group in groups:
            found.setdefault((leaf, group), TextLeaf(f"leaf {len(found)}", leaf, group))
    return tuple(found.values())


def plan_text(
    request: TextQuery,
    leaves: tuple[TextLeaf, ...],
    choices: Mapping[str, IndexChoice],
    *,
    default_columns: Sequence[str],
    columns: tuple[str, ...],
    by_element: bool,
    prefilter: Prefilter | None = None,
) -> TextPlan:
    """Plan one text query.

    Parameters
    ----------
    request
        The query, valid in itself.
    leaves
        Of `text_leaves`.
    choices
        By column that is looked in, the index that is searched.
    default_columns
        Columns that parts look in which name none.
    columns
        Of the answer.
    by_element
        Whether each element of a list is found by itself.
    prefilter
        Which rows may be found; None = all.
    """
    sources = tuple(
        _source(request, column, choice, by_element=by_element)
        for column, choice in choices.items()
    )
    left_out = BitMap.union(BitMap(), *(each.uncovered for each in choices.values()))
    return TextPlan(
        query=request.query,
        leaves=leaves,
        default_columns=tuple(default_columns),
        sources=sources,
        skipped=tuple(each for choice in choices.values() for each in choice.skipped),
        offset=request.offset,
        k=request.k,
        columns=columns,
        by_element=by_element,
        fragments_left_out=len(left_out) if request.fast_search else 0,
        prefilter=prefilter,
        postfilter=None if request.prefilter else request.filter,
    )


def _source(
    request: TextQuery, column: str, choice: IndexChoice, *, by_element: bool
) -> TextSource:
    if request.fast_search or not choice.uncovered:
        return TextSource(column, choice.segments, BitMap(), "")
    if not request.use_index:
        reason = "to search without index was asked for"
    elif choice.segments:
        reason = "no segment of the index covers these fragments"
    else:
        reason = "no usable index"
    if by_element and request.use_index:
        reason = f"{reason}; {NOT_KEPT_UP}"
    return TextSource(column, choice.segments, choice.uncovered, reason)
