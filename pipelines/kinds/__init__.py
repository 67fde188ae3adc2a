"""The kinds of release: what each checks, builds, writes and accounts for."""
