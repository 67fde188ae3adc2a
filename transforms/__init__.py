"""Beam PTransforms and DoFns: thin adapters that move Arrow batches through the mechanisms."""
