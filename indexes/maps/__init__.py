"""Maps of word vectors before they are indexed: codes, groups of words, rescaled distances."""
