"""The command ``lance-pipeline``: one module per sub-command."""
