"""Writing segments of inverted indices."""
