"""Variation of released texts by a command of the publisher's: post-processing of a release."""
