"""Audits of the mechanisms of a spec, a module for each kind of release."""
