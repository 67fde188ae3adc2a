"""A classifier of texts that learns from weighted ones: TF-IDF and logistic regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_LEAST_TEXTS = 3
"""The fewest texts that a word is known from."""


class TextClassifier:
    """Features of some texts to learn from and of texts to test on, by words of the former.

    Models are scikit-learn's logistic regression as it is, on TF-IDF of single words.
    """

    def __init__(self, texts: Sequence[str], tested: Sequence[str]) -> None:
        """Find the features; texts that have no word in common have none, and teach nothing."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        features = TfidfVectorizer(sublinear_tf=True, min_df=min(_LEAST_TEXTS, len(texts)))
        self._known = self._tested = None
        self._count = len(tested)
        try:
            self._known = features.fit_transform(texts)
        except ValueError:  # no word occurs in enough texts to be known
            return
        self._tested = features.transform(tested)

    def predicted(
        self,
        rows: npt.NDArray[np.int64],
        labels: npt.NDArray[np.int64],
        weights: npt.NDArray[np.float64] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Learn from some of the texts; return the predicted labels of all tested texts, int64.

        Args:
            rows: int64 (n,), the numbers of the texts to learn from; a text may occur repeatedly.
            labels: int64 (n,). If they are all one, it is predicted for every text, and zero if
                there are none.
            weights: float64 (n,), or None if all weigh the same.
        """
        if self._known is None or len(np.unique(labels)) < 2:
            return np.full(self._count, labels[0] if len(labels) else 0, dtype=np.int64)
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(max_iter=1000).fit(self._known[rows], labels, weights)
        found: npt.NDArray[np.int64] = model.predict(self._tested)
        return found
