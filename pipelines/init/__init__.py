"""A first spec for a corpus, with the reasons beside its values."""
