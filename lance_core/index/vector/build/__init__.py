"""Making the segments of vector indices: training, encoding, sorting by partition, writing."""
