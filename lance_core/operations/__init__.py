"""What changes a dataset: each operation plans, writes files and commits one transaction."""
