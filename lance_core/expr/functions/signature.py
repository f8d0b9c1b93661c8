"""What a function takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from lance_core.expr.convert import Values

    Evaluate = Callable[[Sequence[Values], int, pa.DataType], Values]
    """Arguments, number of rows, type of the result; at least one argument is an array."""

    ResultType = Callable[[Sequence[pa.DataType]], pa.DataType]
    """Types of the arguments, already what the function takes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What an argument may be.

    Attributes
    ----------
    told
        In errors.
    holds
        Whether values of a type are of this kind.
    taken_as
        The type that they are converted to first; None = as they are.
    """

    told: str
    holds: Callable[[pa.DataType], bool]
    taken_as: pa.DataType | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A function by its name.

    Attributes
    ----------
    name
        In small letters.
    takes
        Kinds of its arguments.
    result
        Type of the result.
    evaluate
        Computes it.
    num_optional
        Arguments at the end that may be left out.
    repeats_last
        Any number of arguments may follow, of the last kind.
    needs_one_type
        All arguments become what the first two, three, ... have in common.
    """

    name: str
    takes: tuple[Kind, ...]
    result: ResultType
    evaluate: Evaluate
    num_optional: int = 0
    repeats_last: bool = False
    needs_one_type: bool = False
