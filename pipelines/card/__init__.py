"""The card of a release: what it states, as people read it, and whether all is as it says."""
