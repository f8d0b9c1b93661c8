"""Routes, one module per topic."""
