"""Which version of a table is meant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pin:
    """A version by number or name, or the latest one of a branch.

    Parameters
    ----------
    version
        Its number, or a tag, which names its branch itself; None = the latest.
    branch
        Whose versions are meant; None = the main one's.
    """

    version: int | str | None = None
    branch: str | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether it always means the same version: tags can be moved, and latest ones pass."""
        return isinstance(self.version, int)


LATEST = Pin()
"""The latest version of the main branch."""
