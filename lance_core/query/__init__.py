"""What a query is and how it runs: request, plan, execution, explanation."""
