"""The ledger: the joint cost of all releases of one corpus, and the caps that bound it."""
