"""The tape: what parsed JSON texts are until they are written as JSONB."""

from __future__ import annotations

FORM, AT, SIZE, NEXT, PLACE, NODE_WORDS = range(6)
"""Columns of the tape.

FORM is ARRAY, OBJECT, STRING, NULL, FALSE, TRUE, or NUMBER_FORM and the tag of a number; AT is
where a string starts, the bits of an integer, the position of a double or the children of a
container; SIZE are the bytes of the payload, NEXT the node behind the last below this one, PLACE
where the payload goes.
"""

NUMBER_FORM = 0x100
"""Added to the tags of numbers, which would be kinds of values otherwise."""
