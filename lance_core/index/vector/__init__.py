"""Vector indices: inverted files over partitions, with a quantiser or whole vectors in each."""
