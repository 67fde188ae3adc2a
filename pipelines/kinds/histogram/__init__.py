"""The kind `histogram`: how many documents have each term, and a private vocabulary."""
