"""Searches for the nearest word of a vector or a code, exact and by FAISS."""
