"""One job per file, the command line, the spec, the card."""
