"""Bags of words and histograms under limited-precision privacy."""
