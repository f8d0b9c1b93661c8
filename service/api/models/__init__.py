"""Shapes of requests and answers; they validate, and they are the OpenAPI schema."""
