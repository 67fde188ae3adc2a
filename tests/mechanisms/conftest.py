"""Compiled kernels are slow the first time they run: Hypothesis sets no deadline."""

from hypothesis import settings

settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")
