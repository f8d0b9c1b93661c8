"""Measurements of lance-serve against pylance on the same files; see ``make bench``."""
