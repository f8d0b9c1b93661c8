"""The HTTP edge: parse, one call, encode."""
