"""The kind `sentence-embeddings`: an embedding of each document, under sentence privacy."""
