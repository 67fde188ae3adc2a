"""Mechanisms for embeddings of documents, under sentence privacy."""
