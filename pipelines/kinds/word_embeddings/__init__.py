"""The kind `word-embeddings`: vectors of words, under a budget for each user."""
