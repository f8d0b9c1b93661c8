"""Functions of filters."""
