"""Audits of a spec's mechanisms, with a module for each kind of release."""
