"""Reading and writing objects: stores, and the scheduler that reads byte ranges from them."""
