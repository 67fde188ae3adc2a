"""The kind `words`: each word replaced by one near it, under metric privacy."""
