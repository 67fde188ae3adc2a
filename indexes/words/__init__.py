"""Word indexes: a folder of words with their vectors or codes."""
