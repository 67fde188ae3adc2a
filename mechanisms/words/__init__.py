"""Mechanisms that replace words, and what documents of them lose."""
