"""The users of a corpus: their contributions, and sums over all of them."""
