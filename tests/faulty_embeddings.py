"""Faults in the training of word embeddings, and the audits that tell."""

from __future__ import annotations

import correct_audits
import numpy as np
from correct_audits import CLIP, SIGMA, Patch, training, users
from planting import Faults, of

import quietcorpus.pipelines.audit.embeddings
from quietcorpus.mechanisms.accounting import Schedule
from quietcorpus.mechanisms.clipped_sum import STEPS, ClippedSum
from quietcorpus.mechanisms.user_training import Training


def squared_norm(patch: Patch) -> None:
    """sigma C^2 for sigma C, as in the public code of dpUGC: less noise where C < 1."""
    wrong = Training(training().settings, ClippedSum(SIGMA * CLIP), 10.0, 0.05)
    patch.setattr(correct_audits, "training", lambda: wrong)


def unclipped(patch: Patch) -> None:
    def asked(values: np.ndarray, dither: np.ndarray) -> np.ndarray:
        return np.floor(values * STEPS + (dither + 0.5) / 2**16).astype(np.int64)

    patch.setattr(quietcorpus.pipelines.audit.embeddings, "clipped", asked)


def one_step_stated(patch: Patch) -> None:
    """The cost of a single step, for all of them."""
    real = Schedule.spent
    patch.setattr(Schedule, "spent", lambda self, group, done: real(self, group, 1))


FAULTS: Faults = {
    "sigma C^2 for sigma C, by accounting": (of(users, squared_norm), "accounting"),
    "sigma C^2 for sigma C, by draws": (
        of(users, squared_norm),
        "a step's sums, with and without a user",
    ),
    "users who are not clipped": (of(users, unclipped), "a step's sums, with and without a user"),
    "one step accounted for, of 40": (of(users, one_step_stated), "accounting"),
}
