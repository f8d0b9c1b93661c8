"""How an inverted index is to be built: what callers ask for, and what files and manifest say."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.index.details_bytes import bytes_field, number_field
from lance_core.index.segment_files import IndexDetails
from lance_core.index.text.layout import PositionCodec
from lance_core.index.text.parameters import (
    CODE_FLAGS,
    JSON,
    PARAMETER_NAMES,
    TextParameters,
    given_parameters,
    written_parameters,
)
from lance_core.index.text.writers.encoded_lists import PostingForm
from lance_core.kernels.text_postings import SMALL_BLOCK

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT_PARAMETERS = (*PARAMETER_NAMES, "format_version")
"""Names of what callers may ask for."""

_FORMAT = "format_version"
_DETAILS = "/lance.table.InvertedIndexDetails"
_CODE = "code"
_FIRST_VERSION, _USUAL_VERSION, _NEWEST_VERSION = 1, 2, 3
_VERSIONS = {spelt: n for n in (1, 2, 3) for spelt in (n, str(n), f"v{n}", f"V{n}")}


@dataclass(frozen=True, slots=True)
class TextRecipe:
    """How tokens are made, and which version of the format has them.

    Parameters
    ----------
    parameters
        How tokens are made.
    format_version
        1 to 3; blocks of 256 postings and code need 3, and readers before 10.0 need 1.
    """

    parameters: TextParameters
    format_version: int

    @property
    def form(self) -> PostingForm:
        """How posting lists are stored."""
        told = self.parameters
        return PostingForm(
            told.block_size,
            is_first=self.format_version == _FIRST_VERSION,
            has_positions=told.with_position,
        )

    @property
    def details(self) -> IndexDetails:
        """What the manifest says of a segment."""
        return IndexDetails(_DETAILS, _details(self), self.format_version)

    def posting_metadata(self) -> dict[str, str]:
        """Return what files of posting lists say of themselves."""
        told = {
            "format_version": str(self.format_version),
            "posting_block_size": str(self.parameters.block_size),
        }
        if self.format_version == _FIRST_VERSION:
            return told
        told["posting_tail_codec"] = "varint_delta_v1"
        if self.parameters.with_position:
            told["positions_layout"] = "shared_stream_v2"
            told["positions_codec"] = PositionCodec.PACKED
        return told

    def segment_metadata(self, partitions: int) -> dict[str, str]:
        """Return what the file of a segment of so many partitions says."""
        return {
            "posting_tail_codec": "fixed32_v1",
            **self.posting_metadata(),
            "partitions": json.dumps(list(range(partitions)), separators=(",", ":")),
            "params": written_parameters(self.parameters),
            "token_set_format": "fst",
        }


def text_recipe(column_type: pa.DataType, given: Mapping[str, object]) -> TextRecipe:
    """Check what a caller asks for and fill in the rest.

    Parameters
    ----------
    column_type
        Type of the column.
    given
        As `given_parameters` takes it, and ``format_version``: 1 to 3, also as text and behind a
        ``v``; None for 2, or 3 where that is needed.

    Raises
    ------
    InvalidRequestError
        The column is none of texts, or there is no such parameter or value.

    Notes
    -----
    Scalar index page, sections 8.1 and 8.2, and types tried with pylance 14.0.2.
    """
    if not _has_texts(column_type) and not _is_json(column_type):
        raise InvalidRequestError(
            f"an INVERTED index takes columns of texts, of lists of texts or of JSON, not of"
            f" type {column_type}"
        )
    parameters = given_parameters({name: each for name, each in given.items() if name != _FORMAT})
    if _is_json(column_type):
        parameters = replace(parameters, lance_tokenizer=JSON)
    return TextRecipe(parameters, _format_version(parameters, given.get(_FORMAT)))


def told_parameters(parameters: TextParameters) -> dict[str, object]:
    """Return parameters as `text_recipe` takes them; those of code only where it is code."""
    told = {name: getattr(parameters, name) for name in PARAMETER_NAMES}
    if parameters.base_tokenizer != _CODE:
        told = {name: value for name, value in told.items() if name not in CODE_FLAGS}
    return told


def fitting_version(parameters: TextParameters, wanted: int) -> int:
    """Return a version of the format, or, where it lacks what is asked, the one that has it."""
    needs_newest = parameters.base_tokenizer == _CODE or parameters.block_size != SMALL_BLOCK
    return _NEWEST_VERSION if needs_newest else max(wanted, _FIRST_VERSION)


def _is_json(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.JsonType)


def _has_texts(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return kind.value_type in (pa.string(), pa.large_string())
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _format_version(parameters: TextParameters, asked: object) -> int:
    if asked is None:
        return fitting_version(parameters, _USUAL_VERSION)
    version = _VERSIONS.get(asked) if isinstance(asked, int | str) else None
    if version is None or isinstance(asked, bool):
        raise InvalidRequestError(f"format_version is 1, 2 or 3, not {asked!r}")
    fitting = fitting_version(parameters, version)
    if version != fitting:
        raise InvalidRequestError(
            f"format_version {version} has neither blocks of 256 postings nor the tokens of code;"
            f" take {fitting}"
        )
    return version


def _details(recipe: TextRecipe) -> bytes:
    """Spell what the manifest says; numbers of 0 are left out but for the limit of tokens."""
    told = recipe.parameters
    limit = told.max_token_length
    numbers = {
        3: int(told.with_position),
        5: int(told.lower_case),
        6: int(told.stem),
        7: int(told.remove_stop_words),
        8: int(told.ascii_folding),
        9: told.min_ngram_length,
        10: told.max_ngram_length,
        11: int(told.prefix_only),
        12: told.block_size,
        15: recipe.format_version,
    }
    fields = {field: number_field(field, number) for field, number in numbers.items() if number > 0}
    fields[1] = bytes_field(1, told.base_tokenizer.encode())
    fields[2] = bytes_field(2, json.dumps(told.language).encode())
    if limit is not None:
        fields[4] = number_field(4, limit)
    if told.base_tokenizer == _CODE:
        fields[13] = bytes_field(13, _code_details(told))
    return b"".join(fields[field] for field in sorted(fields))


def _code_details(told: TextParameters) -> bytes:
    """Spell what only code has; what the base tokenizer sets stands there even if it is 0."""
    fields = [number_field(1, 1)] if told.split_identifiers else []
    fields.append(number_field(2, int(told.split_on_numerics)))
    fields.append(number_field(3, int(told.preserve_original)))
    if told.index_operators:
        fields.append(number_field(4, 1))
    return b"".join(fields)
