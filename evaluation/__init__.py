"""Arrays in, scores out: utility metrics, attacks and audits."""
