"""Rows of a pipeline that somebody else composes: in as they come, and out as released rows."""
