"""Audits: the privacy loss of a mechanism, computed or measured, against its statement."""
