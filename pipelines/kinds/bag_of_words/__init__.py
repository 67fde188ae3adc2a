"""The kind `bag-of-words`: each document's words in bins, under limited-precision privacy."""
