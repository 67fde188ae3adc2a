"""Provenance: whether texts that are said to be public are in the private corpus."""
