"""A step of a plan as it is shown: a name, settings, and what feeds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ProbeSetting:
    """Between how many partitions and how many are probed; the same number twice is fixed."""

    minimum: int
    maximum: int

    def __str__(self) -> str:
        if self.minimum == self.maximum:
            return str(self.minimum)
        return f"automatic, {self.minimum} to {self.maximum}"


Setting = str | int | float | None | tuple[str, ...] | ProbeSetting


@dataclass(frozen=True, slots=True)
class PlanNode:
    """One step of a plan.

    Parameters
    ----------
    name
        Kind of the step.
    step
        Its key among measures.
    settings
        What it goes by, in the order to show it.
    inputs
        What feeds it. Steps of which several make use stand under each of them.
    """

    name: str
    step: str
    settings: Mapping[str, Setting]
    inputs: tuple[PlanNode, ...] = ()
