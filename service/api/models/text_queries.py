"""The ``full_text_query`` and ``fusion`` of query bodies, in all forms (rest-api section 6)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from service.api.models.body import Body, NonNegative, Positive


class MatchBody(Body):
    """Rows whose text has words."""

    terms: str = Field(description="The words.")
    column: str | None = Field(None, description="Absent: all columns with a text index.")
    boost: float | None = Field(None, description="What scores are multiplied with; absent: 1.")
    fuzziness: NonNegative | None = Field(
        None, description="Characters that words may differ in; absent: 0."
    )
    max_expansions: NonNegative | None = Field(
        None,
        description="Words near those of `terms` that are looked for at most; absent: 50.",
    )
    operator: str | None = Field(
        None, description="`Or`: one of the words is enough; `And`: all are needed. Absent: `Or`."
    )
    prefix_length: NonNegative | None = Field(
        None, description="First characters of near words that must be the same; absent: 0."
    )
    document_granularity: str | None = Field(None, description="Only `row`, also if absent.")


class PhraseBody(Body):
    """Rows whose text has words one after the other."""

    terms: str = Field(description="The words.")
    column: str | None = Field(None, description="Absent: all columns with a text index.")
    slop: NonNegative | None = Field(
        None, description="Words more that may be between two; absent: 0."
    )
    document_granularity: str | None = Field(None, description="Only `row`, also if absent.")


class BoostBody(Body):
    """Rows of one query, those of another among them ranked lower."""

    positive: TextNodeBody
    negative: TextNodeBody
    negative_boost: float | None = Field(
        None, description="What the other's score counts; absent: 0.5."
    )


class MultiMatchBody(Body):
    """Rows that one of several matches finds, each with its best score."""

    match_queries: list[MatchBody] | None = Field(
        None, description="The matches; or in short `query` and `columns`."
    )
    query: str | None = Field(None, description="The words, the same in all columns.")
    columns: list[str] | None = Field(None, description="The columns.")
    boost: list[float] | None = Field(None, description="One for each column; absent: 1.")
    operator: str | None = Field(None, description="As of `match`.")


class CombinedFieldsBody(Body):
    """Rows whose texts, several columns taken as one, have words."""

    query: str = Field(description="The words.")
    columns: list[str] = Field(description="The columns.")
    boost: list[float] | None = Field(
        None, description="How often each column counts, 1 to 2^20; absent: once."
    )
    operator: str | None = Field(None, description="As of `match`.")


class BooleanBody(Body):
    """Rows that all of `must` find, or one of `should` if there is none, and no `must_not`."""

    must: list[TextNodeBody] | None = None
    should: list[TextNodeBody] | None = None
    must_not: list[TextNodeBody] | None = None


class TextNodeBody(Body):
    """A text query, or a part of one: just one of these."""

    match: MatchBody | None = None
    phrase: PhraseBody | None = None
    boost: BoostBody | None = None
    multi_match: MultiMatchBody | None = None
    combined_fields: CombinedFieldsBody | None = None
    boolean: BooleanBody | None = None


class StructuredTextQuery(Body):
    """A text query as a tree."""

    query: TextNodeBody


class StringTextQuery(Body):
    """A text query as words; in double quotes they are a phrase."""

    query: str
    columns: list[str] | None = Field(
        None, description="Absent or empty: all columns with a text index."
    )


class NamespaceTextQuery(Body):
    """The Namespace form of text queries: just one of these."""

    string_query: StringTextQuery | None = None
    structured_query: StructuredTextQuery | None = None


WireTextQuery = str | StringTextQuery | StructuredTextQuery | NamespaceTextQuery
"""All forms of text queries."""


class FusionBody(Body):
    """How the rows of a vector query and of a text query become one answer."""

    kind: Literal["rrf", "weighted"] | None = Field(
        None,
        description="`rrf`: reciprocal rank fusion; `weighted`: distances and scores, each scaled"
        " to 0 to 1. Absent: `weighted` where weights are given, else `rrf`.",
    )
    k: Positive | None = Field(
        None, description="Of `rrf`: a row counts 1 / (k + its place); absent: 60."
    )
    weights: list[float] | None = Field(
        None, description="Of `weighted`: what the vector and what the text counts."
    )
    vector: float | None = Field(None, description="Instead of `weights`: what the vector counts.")
    text: float | None = Field(None, description="Instead of `weights`: what the text counts.")
