"""Words of texts: tokenizers, languages, vocabularies."""
