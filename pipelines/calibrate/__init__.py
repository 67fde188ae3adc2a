"""What an epsilon makes of public data, for each kind of release, before the run."""
