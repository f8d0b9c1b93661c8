"""Names under which steps are measured; an index search goes by the uuid of its segment."""

from __future__ import annotations

SCAN = "scan"
FILTER = "filter"
ORDER = "order"
FLAT = "flat"
RANK = "rank"
RESCORE = "rescore"
LISTED = "listed"
PREFILTER = "prefilter"
POSTFILTER = "postfilter"
MERGE = "merge"
TAKE = "take"
FUSE = "fuse"

OF_VECTOR = "vector/"
OF_TEXT = "text/"
"""Before the steps of the queries of which a hybrid one is made."""
