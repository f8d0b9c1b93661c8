"""Compiled loops: arrays in, arrays out; no I/O, no objects."""
