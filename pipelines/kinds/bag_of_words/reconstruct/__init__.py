"""Reconstruction: better documents from a release of noisy bins, at no cost."""
