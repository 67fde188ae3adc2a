"""The kinds of release: each checks a spec, builds a job, and accounts for its cost."""
