"""The master key in this process's environment, and a transform of words."""

from composed import master_key, words_of

__all__ = ["master_key", "words_of"]
