"""Writers of scalar indices: streams of values and row names in, the files of a segment out."""
