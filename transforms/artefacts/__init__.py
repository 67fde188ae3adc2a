"""Artefacts by their URI: found by the launcher; checked, fetched and opened by its workers."""
