"""Keeping what was loaded: a byte budget, and one load per key however many ask."""
