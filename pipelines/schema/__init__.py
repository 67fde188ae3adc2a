"""The spec of a release: its blocks and its reading."""
