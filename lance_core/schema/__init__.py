"""The Lance field tree and its Arrow form."""
