"""Public artefacts: how they are built, and what they tell of words before a run."""
