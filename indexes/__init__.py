"""Public artefacts that workers share: vocabularies, embeddings, compression maps."""
