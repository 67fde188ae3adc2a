"""The reading of a corpus: its files, their formats, its documents and their ids."""
