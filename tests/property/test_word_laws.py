from __future__ import annotations

import pyarrow as pa
from hypothesis import given, strategies as st

from lance_core.expr.token_characters import token_characters
from lance_core.expr.words import have_words, words

SIGNS = st.sampled_from("ab1½_ -\n\u0301का京\U0001f44d")
TEXTS = st.lists(st.none() | st.text(SIGNS, max_size=12), max_size=20)
WANTED = st.frozensets(st.text(st.sampled_from("ab1½का京"), min_size=1, max_size=2), max_size=12)


def plain_words(text: str) -> set[str]:
    taken = token_characters()
    return set("".join(each if taken[ord(each)] else " " for each in text).split(" ")) - {""}


@given(texts=TEXTS, wanted=WANTED)
def test_texts_have_the_words_that_are_cut_out_of_them(
    texts: list[str | None], wanted: frozenset[str]
) -> None:
    found = have_words(pa.array(texts, pa.string()), wanted).to_pylist()
    assert found == [None if each is None else wanted <= plain_words(each) for each in texts]


@given(text=st.text(max_size=30))
def test_words_are_the_runs_between_other_signs(text: str) -> None:
    assert words(text) == plain_words(text)
