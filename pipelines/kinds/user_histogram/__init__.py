"""`kind: histogram` with `user`: counts of words under a budget for each user."""
