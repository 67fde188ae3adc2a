"""The inference of all documents learnt from together: by its formula, and where answers are few.

An AUC of m members and as many others has a deviation of chance of sqrt((2 m + 1) / (12 m^2));
controls stand five of them apart (6e-7, two-sided).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from quietcorpus.evaluation.attacks.linkage import in_terms
from quietcorpus.evaluation.attacks.membership import (
    GradientMembership,
    JointMembership,
    Membership,
    _least_squares,
    half,
    membership,
)
from quietcorpus.evaluation.classification import fitted, posteriors


def topical(n: int, seed: int) -> tuple[sp.csr_array, npt.NDArray[np.int64]]:
    """Counts of 200 terms of two classes alike, so that an answer alone tells little."""
    generator = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    means = generator.gamma(0.4, 1.0, (2, 200))
    means[1, :150] = means[0, :150]
    return sp.csr_array(generator.poisson(means[labels])), labels


def under_noise(counts: sp.csr_array, generator: np.random.Generator) -> sp.csr_array:
    one, other = generator.geometric(0.9, (2, *counts.shape))
    return sp.csr_array(np.maximum(counts.toarray() + one - other, 0))


def test_scores_are_the_posterior_means_of_all_answers() -> None:
    # By the whole covariance of all answers of all classes, in one system. Kills: answers of one
    # class alone, their noise taken for independent, a prior that is not of mean 1/2.
    generator = np.random.default_rng()
    counts, labels = topical(12, 1)
    attack = JointMembership(
        counts, [under_noise(counts, generator) for _ in range(3)], labels, generator
    )
    answers = generator.dirichlet(np.ones(2), 12)
    shares, alike, noise = attack._shares, attack._alike, attack._noise.copy()
    noise += np.eye(12) * (1e-3 * np.trace(noise) + 1e-6 * (alike**2).sum()) / 12
    noise += 1e3 * np.trace(noise) / 12
    design = np.vstack([(own[:, None] * alike).T for own in shares.T])
    covariance = np.kron(np.diag((shares**2).sum(axis=0) / 2), noise)
    logs = np.log(answers) - np.log(answers).mean(axis=1, keepdims=True)
    seen = logs.T.ravel() - design.sum(axis=1) / 2
    gain = design @ design.T / 4 + covariance
    expected = design.T @ np.linalg.solve(gain, seen) / 4
    np.testing.assert_allclose(attack(answers), expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("dense", [False, True])
def test_members_are_told_by_all_answers_where_their_own_tell_less(dense: bool) -> None:
    # 120 documents, 60 of them learnt from. Kills: fresh releases that are another document's, a
    # sign, the strength of another kind of features, an attack that knows the members.
    generator = np.random.default_rng(7)
    counts, labels = topical(120, 2)
    form = (lambda own: own.toarray().astype(float)) if dense else (lambda own: own)
    members = half(labels, generator)
    released = form(under_noise(counts, generator))
    answers = posteriors(released[members], labels[members])(form(counts))
    draws = [form(under_noise(counts, generator)) for _ in range(4)]
    attack = JointMembership(form(counts), draws, labels, generator)
    alone = Membership(members, answers[np.arange(120), labels]).auc
    assert Membership(members, attack(answers)).auc > alone + 0.03
    # Control: the answers of a model of other documents, of which nobody is a member.
    others, classes = topical(60, 3)
    stranger = posteriors(form(under_noise(others, generator)), classes)(form(counts))
    assert abs(Membership(members, attack(stranger)).auc - 0.5) < 5 * (121 / (12 * 60**2)) ** 0.5


def test_the_attack_is_one_signal_more_of_the_learnt_one() -> None:
    # Kills: the shadows' worlds in each other's place, a signal of the target alone.
    generator = np.random.default_rng(9)
    counts, labels = topical(240, 4)
    released = under_noise(counts, generator)

    def learn(members: npt.NDArray[np.int64]):  # type: ignore[no-untyped-def]
        model = posteriors(released[members], labels[members])
        return lambda asked: model(counts[asked])

    def redraw(some: npt.NDArray[np.int64]) -> tuple[sp.csr_array, list[sp.csr_array]]:
        return counts[some], [under_noise(counts[some], generator) for _ in range(3)]

    before = membership(learn, labels, 2, np.random.default_rng(1))
    after = membership(learn, labels, 2, np.random.default_rng(1), redraw)
    assert before.together is None
    assert after.together is not None
    assert (after.together.members == before.learnt.members).all()
    assert after.learnt.auc > before.learnt.auc + 0.03


def dense(n: int, dimensions: int, seed: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Normal rows of three classes that lie a little apart, and the classes."""
    generator = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    apart = generator.normal(size=(3, dimensions)) / np.sqrt(dimensions)
    return generator.normal(size=(n, dimensions)) + apart[labels], labels


def test_members_are_told_by_the_gradients_that_coefficients_add_up_from() -> None:
    # 1,600 rows of 80 values and little noise: seeds give .61 to .66, where all answers taken for
    # normal tell nothing. Kills: coefficients that are not recovered, a sign, the last class or
    # another strength, features that are not standardised, gradients of the originals' own labels.
    generator = np.random.default_rng(3)
    raw, labels = dense(1_600, 80, 3)
    released, *draws = raw + 0.1 * generator.normal(size=(7, *raw.shape))
    members = half(labels, generator)
    answers = posteriors(released[members], labels[members])(raw)
    attack = GradientMembership(raw, draws, labels)
    chance = (1_601 / (12 * 800**2)) ** 0.5
    found = Membership(members, attack(answers)).auc
    assert found > 0.5 + 6 * chance
    jointly = JointMembership(raw, draws, labels, generator)(answers)
    assert found > Membership(members, jointly).auc + 0.05
    # Control: the answers of a model of other documents.
    others, classes = dense(800, 80, 4)
    stranger = posteriors(others, classes)(raw)
    assert abs(Membership(members, attack(stranger)).auc - 0.5) < 5 * chance


def test_coefficients_are_recovered_from_log_odds_of_originals() -> None:
    # Kills: answers that are not centred, an intercept left out, coefficients of standardised
    # features in place of the others'.
    raw, labels = dense(200, 5, 5)
    model = fitted(raw, labels)
    attack = GradientMembership(raw, [raw, raw + 1e-9], labels)
    logs = np.log(model.predict_proba(raw))
    logs -= logs.mean(axis=1, keepdims=True)
    found = _least_squares(attack._originals, logs)
    np.testing.assert_allclose(found[:-1].T, model[-1].coef_, atol=1e-6)
    # Of more features than rows, the smallest that fit.
    wide = np.column_stack([raw[:4], raw[:4]])
    twice = _least_squares(wide, wide @ np.ones((10, 1)))
    np.testing.assert_allclose(wide @ twice, wide @ np.ones((10, 1)), atol=1e-6)
    np.testing.assert_allclose(twice[:5], twice[5:], atol=1e-6)


@pytest.mark.parametrize("noise", [0.1, None])
def test_membership_by_all_answers_takes_what_tells_the_shadows_members(
    noise: float | None,
) -> None:
    # Kills: the gradients left out of the learnt attack, or of the one by all answers, and a
    # mixture that is chosen by the target's own members. Without noise given, rows that others'
    # releases stand for: chance.
    generator = np.random.default_rng(6)
    raw, labels = dense(1_200, 40, 6)
    released = raw + 0.1 * generator.normal(size=raw.shape)
    if noise is None:
        released = dense(1_200, 40, 7)[0]

    def learn(members: npt.NDArray[np.int64]):  # type: ignore[no-untyped-def]
        model = posteriors(released[members], labels[members])
        return lambda asked: model(raw[asked])

    def redraw(some: npt.NDArray[np.int64]) -> tuple[Any, list[Any]]:
        return raw[some], list(raw[some] + 0.1 * generator.normal(size=(6, len(some), 40)))

    after = membership(learn, labels, 3, np.random.default_rng(1), redraw)
    before = membership(learn, labels, 3, np.random.default_rng(1))
    assert after.together is not None
    chance = (601 / (12 * 300**2)) ** 0.5
    if noise is None:
        for one in after:
            assert one is not None
            assert abs(one.auc - 0.5) < 5 * chance
    else:
        assert after.together.auc > 0.5 + 4 * chance
        assert after.learnt.auc > before.learnt.auc + 0.03


def test_counts_of_bins_spread_over_their_terms_by_weight() -> None:
    # 60,000 tokens: five deviations of a share of 3/4 are .009. Kills: terms of another bin, even
    # weights, tokens lost.
    bins = np.array([1, 0, 1, 2, 0], np.int32)
    counts = sp.csr_array(np.array([[10, 60_000, 0], [0, 0, 7]]))
    found = in_terms(counts, bins, np.array([3.0, 0, 1, 0, 0]), np.random.default_rng()).toarray()
    assert found[0, 1] + found[0, 4] == 10
    assert found[0, 0] + found[0, 2] == 60_000
    assert abs(found[0, 0] / 60_000 - 0.75) < 0.009
    assert found[1].tolist() == [0, 0, 0, 7, 0]
