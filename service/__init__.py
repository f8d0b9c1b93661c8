"""The HTTP query service over Lance datasets."""
