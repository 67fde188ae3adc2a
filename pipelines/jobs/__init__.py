"""Parts that all kinds of release share: the job of a run, its files, its users and its noise."""
