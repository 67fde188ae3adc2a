"""Transforms for pipelines that others compose: what is asked for, its graph and its card."""
