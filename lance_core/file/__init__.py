"""One Lance file: container, columns, pages."""
