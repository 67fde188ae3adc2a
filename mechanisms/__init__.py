"""Samplers, mechanisms, guarantees and accounting: all that a privacy definition needs."""
