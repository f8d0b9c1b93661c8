"""Distinct types for the numbers that the format calls ids, so that one cannot pass for another."""

from __future__ import annotations

from typing import NewType

FieldId = NewType("FieldId", int)
"""Id of a schema field; negative ids name no schema field."""

FragmentId = NewType("FragmentId", int)
"""Id of a fragment, 32 bits, never reused within a dataset."""

ColumnIndex = NewType("ColumnIndex", int)
"""Position of a column in one Lance file."""

Version = NewType("Version", int)
"""Number of a committed dataset version, from 1."""
