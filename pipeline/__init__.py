"""Spark jobs that make Lance datasets and their indices, and keep them in shape."""

from pipeline.registration import register

__all__ = ["register"]
