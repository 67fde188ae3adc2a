"""Public artefacts: their construction, and the distances of words that they record."""
