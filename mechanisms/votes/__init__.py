"""Votes for public texts."""
