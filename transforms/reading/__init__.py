"""A corpus as it is read: its files, their formats, its documents and their ids."""
