"""Samplers of discrete noise, exact to the bit."""
