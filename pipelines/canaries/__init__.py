"""Audits of whole releases by canaries, with a module for each kind of release."""
