"""The spec of a release: its blocks, and how it is read."""
