"""From names to opened datasets."""
