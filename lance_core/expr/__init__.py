"""The filter language: text, parsed, and judged over batches of rows."""
