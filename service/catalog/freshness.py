"""How new the answer has to be, and whether what is held is new enough."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Freshness:
    """What a request demands of the version that answers it.

    Parameters
    ----------
    min_version
        Look again if the version held is older than this one; 0 = no demand.
    not_before_s
        Look again if the last look was before this time (seconds since 1970); None = no demand.
    max_age_s
        Look again if the last look is this long ago or longer; None = the service's setting.
    """

    min_version: int = 0
    not_before_s: float | None = None
    max_age_s: float | None = None


ANY_AGE = Freshness()
"""No demand beyond the service's own setting."""


@dataclass(frozen=True, slots=True)
class Look:
    """When the store was last asked, on both clocks, before the question was sent."""

    wall_s: float
    monotonic_s: float

    def satisfies(
        self, demand: Freshness, *, version: int, now: Look, default_age_s: float
    ) -> bool:
        """Say whether what this look found may answer a request that arrives ``now``.

        A max age of 0 means "look first", so an age equal to the limit is too old.
        """
        max_age_s = default_age_s if demand.max_age_s is None else demand.max_age_s
        if now.monotonic_s - self.monotonic_s >= max_age_s or version < demand.min_version:
            return False
        return demand.not_before_s is None or self.wall_s >= demand.not_before_s
