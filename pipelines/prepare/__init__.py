"""Public artefacts: their construction, and the distances between words that they record."""
