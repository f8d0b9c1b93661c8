"""Indices: what a segment can answer, for which fragments, and how it is searched."""
