"""Attacks: the information that a holder of a release can gain about the texts behind it."""
