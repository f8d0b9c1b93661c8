"""Scalar indices: files that say which rows have a value."""
