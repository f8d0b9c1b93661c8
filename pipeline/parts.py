"""Commits that are a part of a job and do not end it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.job import JOB_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

PART_OF = "pipeline.part_of"


def part_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties of a commit that does not end its job, made of those of one that does.

    Examples
    --------
    >>> part_properties({"pipeline.job_id": "j", "pipeline.kind": "compact"})
    {'pipeline.kind': 'compact', 'pipeline.part_of': 'j'}
    """
    own = {key: value for key, value in properties.items() if key != JOB_ID}
    return own | {PART_OF: properties[JOB_ID]}
