"""What is asked for before a release is handed out: evaluation, audits, and their report."""
