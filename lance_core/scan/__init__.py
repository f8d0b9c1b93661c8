"""Reading rows of a snapshot: in scan order, or by their addresses."""
