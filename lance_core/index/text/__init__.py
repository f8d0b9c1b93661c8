"""The inverted index: text to tokens, their postings, and scores."""
