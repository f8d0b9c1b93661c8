"""Random text queries over the columns of `TextTable`, for us and for pylance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lance import query as peer

from lance_core.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from lance_core.index.text.queries import Operator, TextNode

KINDS = (
    *("match", "match", "match all", "near", "near all", "phrase", "phrase", "loose phrase"),
    *("boolean", "boolean", "boost", "multi match", "combined fields", "any column", "no index"),
)
OPERATORS: tuple[Operator, ...] = ("or", "and")
_MOST_DEPTH = 2


@dataclass(frozen=True, slots=True)
class Ask:
    """One query and how its rows are chosen: `kind` is one of `KINDS`."""

    kind: str
    query: TextNode
    k: int | None
    offset: int = 0
    filter: str | None = None
    prefilter: bool = True
    fast_search: bool = False


class AskWriter:
    """Draws queries whose words are from ``texts``, most of them."""

    def __init__(self, texts: Sequence[str], generator: np.random.Generator) -> None:
        self._texts = [words for text in texts if len(words := text.split()) > 1]
        self._words = sorted({word for words in self._texts for word in words})
        self._generator = generator

    def ask(self, kind: str) -> Ask:
        """Return a query of one of `KINDS`."""
        chance = self._generator.random()
        k: int | None = int(self._generator.choice([1, 3, 10, 10, 10, 50, 200]))
        if self._generator.random() < 0.05:
            k = None
        offset = int(self._generator.integers(1, 20)) if k is not None and chance < 0.1 else 0
        filter_ = None if chance < 0.7 else f"u < {self._generator.choice([3, 10, 100, 500, 900])}"
        return Ask(
            kind,
            self._node(kind),
            k,
            offset,
            filter_,
            prefilter=filter_ is None or self._generator.random() < 0.7,
            fast_search=kind != "no index" and self._generator.random() < 0.1,
        )

    def _node(self, kind: str, depth: int = 0) -> TextNode:
        made: dict[str, Callable[[], TextNode]] = {
            "match": lambda: MatchQuery(self._some_words(), self._column(), boost=self._boost()),
            "match all": lambda: MatchQuery(self._of_one_text(3), self._column(), operator="and"),
            "near": lambda: self._near("or"),
            "near all": lambda: self._near("and"),
            "phrase": lambda: PhraseQuery(self._part_of_one_text(), self._column()),
            "loose phrase": self._loose_phrase,
            "boolean": lambda: self._boolean(depth),
            "boost": lambda: self._lowered(depth),
            "multi match": self._multi_match,
            "combined fields": self._combined_fields,
            "any column": lambda: MatchQuery(self._some_words()),
            "no index": lambda: MatchQuery(self._of_one_text(2), "p", operator=self._operator()),
        }
        return made[kind]()

    def _column(self) -> str:
        return str(self._generator.choice(["t", "t", "t", "s"]))

    def _loose_phrase(self) -> PhraseQuery:
        return PhraseQuery(self._thinned(), self._column(), int(self._generator.integers(1, 4)))

    def _lowered(self, depth: int) -> BoostQuery:
        parts = (self._part(depth), self._part(depth))
        return BoostQuery(*parts, negative_boost=float(self._generator.choice([0.2, 0.5])))

    def _combined_fields(self) -> CombinedFieldsQuery:
        boosts = [None, (1.0, 2.0), (3.5, 1.0)][self._generator.integers(3)]
        return CombinedFieldsQuery(self._some_words(), ("t", "s"), boosts, self._operator())

    def _near(self, operator: Operator) -> MatchQuery:
        words = [self._changed(word) for word in self._of_one_text(2).split()]
        return MatchQuery(
            " ".join(words),
            self._column(),
            fuzziness=int(self._generator.integers(1, 3)),
            max_expansions=int(self._generator.choice([1, 5, 50])),
            operator=operator,
            prefix_length=int(self._generator.integers(0, 3)),
        )

    def _boolean(self, depth: int) -> BooleanQuery:
        num_must, num_should, num_must_not = self._generator.integers(0, 3, 3).tolist()
        if num_must + num_should == 0:
            num_should = 1
        must, should, must_not = (
            tuple(self._part(depth) for _ in range(count))
            for count in (num_must, num_should, num_must_not)
        )
        return BooleanQuery(must, should, must_not)

    def _part(self, depth: int) -> TextNode:
        kinds = ["match", "match", "match all", "phrase"]
        if depth < _MOST_DEPTH:
            kinds += ["boolean", "boost"]
        return self._node(str(self._generator.choice(kinds)), depth + 1)

    def _multi_match(self) -> MultiMatchQuery:
        words, operator = self._some_words(), self._operator()
        boosts = (1.0, 1.0) if self._generator.random() < 0.5 else (1.0, 2.5)
        return MultiMatchQuery(
            tuple(
                MatchQuery(words, column, boost=boost, operator=operator)
                for column, boost in zip(("t", "s"), boosts, strict=True)
            )
        )

    def _operator(self) -> Operator:
        return OPERATORS[self._generator.integers(2)]

    def _boost(self) -> float:
        return float(self._generator.choice([1.0, 1.0, 0.0, 0.3, 2.0]))

    def _some_words(self) -> str:
        """Return words of texts, of the vocabulary, and now and then one of no text."""
        chosen = [self._one_word() for _ in range(self._generator.integers(1, 6))]
        if self._generator.random() < 0.1:
            chosen.append(chosen[0])
        return " ".join(chosen)

    def _one_word(self) -> str:
        chance = self._generator.random()
        if chance < 0.03:
            return "zzyzx"
        if chance < 0.4:
            return self._words[self._generator.integers(len(self._words))]
        words = self._one_text()
        return words[self._generator.integers(len(words))]

    def _one_text(self) -> list[str]:
        return self._texts[self._generator.integers(len(self._texts))]

    def _of_one_text(self, most: int) -> str:
        words = self._one_text()
        chosen = self._generator.choice(words, self._generator.integers(1, most + 1))
        return " ".join(chosen.tolist())

    def _part_of_one_text(self, most: int = 4) -> str:
        words = self._one_text()
        start = int(self._generator.integers(len(words) - 1))
        return " ".join(words[start : start + int(self._generator.integers(2, most + 1))])

    def _thinned(self) -> str:
        """Return words that follow each other in one text, some being left out."""
        words = self._part_of_one_text(most=6).split()
        kept = [word for word in words[1:-1] if self._generator.random() < 0.6]
        return " ".join([words[0], *kept, words[-1]])

    def _changed(self, word: str) -> str:
        at = int(self._generator.integers(len(word)))
        other = str(self._generator.choice(list("aeirst")))
        return [word, word[:at] + other + word[at + 1 :], word[:at] + word[at + 1 :] or word][
            self._generator.integers(3)
        ]


def query_of_pylance(node: TextNode) -> Any:
    """Return the same query for pylance; text alone where no column is named."""
    match node:
        case MatchQuery():
            return node.text if node.column is None else _match(node)
        case PhraseQuery():
            return peer.PhraseQuery(node.text, str(node.column), slop=node.slop)
        case BooleanQuery():
            return _boolean(node)
        case BoostQuery():
            parts = (query_of_pylance(node.positive), query_of_pylance(node.negative))
            return peer.BoostQuery(*parts, negative_boost=node.negative_boost)
        case _:
            return _of_several_columns(node)


def _match(node: MatchQuery) -> peer.MatchQuery:
    return peer.MatchQuery(
        node.text,
        str(node.column),
        boost=node.boost,
        fuzziness=0 if node.fuzziness is None else node.fuzziness,
        max_expansions=node.max_expansions,
        operator=_operator(node.operator),
        prefix_length=node.prefix_length,
    )


def _boolean(node: BooleanQuery) -> peer.BooleanQuery:
    parts = (
        (peer.Occur.MUST, node.must),
        (peer.Occur.SHOULD, node.should),
        (peer.Occur.MUST_NOT, node.must_not),
    )
    return peer.BooleanQuery(
        [(occur, query_of_pylance(each)) for occur, nodes in parts for each in nodes]
    )


def _of_several_columns(node: MultiMatchQuery | CombinedFieldsQuery) -> Any:
    if isinstance(node, MultiMatchQuery):
        first = node.matches[0]
        return peer.MultiMatchQuery(
            first.text,
            [str(each.column) for each in node.matches],
            boosts=[each.boost for each in node.matches],
            operator=_operator(first.operator),
        )
    boosts = None if node.boosts is None else list(node.boosts)
    operator = _operator(node.operator)
    return peer.CombinedFieldsQuery(node.text, list(node.columns), boosts=boosts, operator=operator)


def _operator(operator: Operator) -> peer.FullTextOperator:
    return peer.FullTextOperator[operator.upper()]
