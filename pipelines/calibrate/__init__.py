"""The effect of an epsilon on public data, for each kind of release, before the run."""
