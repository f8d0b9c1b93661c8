"""Array encodings: the pages of 2.0 files (file format, section 3)."""
