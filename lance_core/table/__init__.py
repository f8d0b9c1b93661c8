"""Versions of a dataset: manifests, fragments, deletions, index entries. Reads no rows."""
