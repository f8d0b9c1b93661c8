"""Words of SQL that filters do not have, and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlglot.tokenizer_core import Token

_CASE = "CASE is not supported; write AND and OR, or coalesce and nullif"
_QUERY = "sub-queries are not supported; a filter judges one row, write IN with a list of values"
_CLAUSE = "{} is not supported; a filter is one test, the rest belongs to the request"
_TOTAL = "{} is not supported; a filter judges one row"
_PATTERN = "{} is not supported; write regexp_like(text, pattern)"
_PART = "{} is not supported; write left, right or split_part"
_TOLD: Mapping[str, str] = {
    **dict.fromkeys(("CASE", "WHEN"), _CASE),
    **dict.fromkeys(("SELECT", "EXISTS"), _QUERY),
    **dict.fromkeys(("ORDER", "LIMIT", "OFFSET", "GROUP", "HAVING", "UNION", "FROM"), _CLAUSE),
    **dict.fromkeys(("COUNT", "SUM", "AVG", "MIN", "MAX", "OVER", "ROW_NUMBER"), _TOTAL),
    **dict.fromkeys(("SIMILAR", "RLIKE", "REGEXP", "GLOB"), _PATTERN),
    **dict.fromkeys(("SUBSTR", "SUBSTRING"), _PART),
    **dict.fromkeys(("ANY", "SOME"), "{} is not supported; write IN or array_has(list, value)"),
    **dict.fromkeys(("IF", "IIF"), "{} is not supported; write AND and OR"),
    "INTERVAL": "INTERVAL is not supported; compare with a date or timestamp",
    "EXTRACT": "EXTRACT is not supported; write date_part('year', value)",
    "TRIM": "TRIM is not supported; write btrim(text)",
    "POSITION": "POSITION is not supported; write strpos(text, part)",
    "DIV": "DIV is not supported; write /, which cuts whole numbers",
    "XOR": "XOR is not supported; write <> between tests in brackets",
    "ISNULL": "ISNULL is not supported; write IS NULL",
    "NOTNULL": "NOTNULL is not supported; write IS NOT NULL",
    "COLLATE": "COLLATE is not supported; texts are compared by their bytes",
    "CONVERT": "CONVERT is not supported; write CAST(value AS type)",
}


def told_of(word: str) -> str | None:
    """Return why a word is refused; None if it is none of SQL's, or one of ours."""
    upper = word.upper()
    return _TOLD[upper].format(word) if upper in _TOLD else None


def foreign_word(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    """Find the word of SQL because of which a parser stopped.

    Parameters
    ----------
    tokens
        Of the filter.
    at
        Number of the one that the parser stopped at.

    Returns
    -------
    tuple[int, str] or None
        Its place, from 1, and why it is refused.
    """
    behind_bracket = at >= 3 and tokens[at - 2].token_type is TokenType.L_PAREN  # noqa: PLR2004
    for number in (*((at - 3,) if behind_bracket else ()), at - 1, at):
        if not 0 <= number < len(tokens) or tokens[number].token_type is not TokenType.VAR:
            continue
        told = told_of(tokens[number].text)
        if told is not None:
            return tokens[number].start + 1, told
    return None
