"""The kind `overview`: public groups of texts, with noisy sizes and telling words."""
