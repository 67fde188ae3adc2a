"""The peers' side of `benchmarks/auditors.py`: it runs in the environment of one peer.

    PYTHON benchmarks/auditor_peers.py NAME FOLDER

It reads every file of arrays in a folder, and writes what the peer finds in each, NAME.json.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, Any]
Found = dict[str, float]


def jax_privacy(given: Arrays) -> Found:
    from jax_privacy.auditing import CanaryScoreAuditor, Split

    if given["task"] == "members":
        return {}
    level, delta = float(given["level"]), float(given["delta"])
    if given["task"] == "coins":
        own = CanaryScoreAuditor(given["scores"][given["coins"]], given["scores"][~given["coins"]])
        return {
            "one run (Steinke)": own.epsilon_one_run(level, delta),
            "one run, if Gaussian (Mahloujifar)": own.epsilon_one_run_fdp(level, delta),
        }
    own = CanaryScoreAuditor(given["one"], given["other"])
    found = {
        "all thresholds": own.epsilon_clopper_pearson(level, delta, one_sided=False),
        "split": own.epsilon_clopper_pearson(
            level, delta, one_sided=False, threshold_strategy=Split(seed=0)
        ),
    }
    if delta:
        found["if Gaussian"] = own.epsilon_from_gdp(level, delta)
    return found


def opake(given: Arrays) -> Found:
    from opake import auditing
    from opake.auditing.types import CoinFlip

    if given["task"] != "coins":
        return {}
    scores, coins = given["scores"], given["coins"]
    numbers = np.arange(len(scores))
    flips = CoinFlip(len(scores), numbers, coins, numbers[coins], numbers[~coins])
    found = auditing.one_run(
        auditing.canary_scores(scores, canary_indices=numbers), coin_flip=flips
    )
    level, delta = float(given["level"]), float(given["delta"])
    bounds = {
        "order statistics (Xiang)": found.eps_delta().epsilon_at(delta=delta, significance=level)
    }
    if delta:
        bounds["the same, if Gaussian"] = found.gdp().epsilon_at(delta=delta, significance=level)
    return bounds


def privacy_guard(given: Arrays) -> Found:
    if given["task"] == "coins":
        from privacy_guard.analysis.mia.fdp_analysis_node import FDPAnalysisNode

        canaries, made, right = (int(given[name]) for name in ("canaries", "made", "right"))
        node = FDPAnalysisNode(
            canaries, right, made, threshold=float(given["level"]), delta=float(given["delta"])
        )
        return {"one run, if Gaussian (Mahloujifar)": float(node.run_analysis().eps)}
    if given["task"] == "pair":
        return {}
    import pandas as pd
    from privacy_guard.attacks.lira_attack import LiraAttack
    from privacy_guard.attacks.rmia_attack import RmiaAttack

    own, references, members = given["own"], given["references"], given["members"]
    aggregation = __import__(
        "privacy_guard.analysis.mia.aggregate_analysis_input", fromlist=["AggregationType"]
    ).AggregationType.NONE

    def frame(chosen: Any, odds: bool) -> Any:
        def signal(p: Any) -> Any:
            return np.log(p / (1 - p)) if odds else p

        table = pd.DataFrame({"user_id": np.flatnonzero(chosen), "score_orig": signal(own[chosen])})
        for number, column in enumerate(references[chosen].T):
            table[f"score_ref_{number}"], table[f"member_ref_{number}"] = signal(column), False
        table["score_mean"] = signal(references[chosen]).mean(axis=1)
        table["score_std"] = signal(references[chosen]).std(axis=1)
        return table

    def auc(attack: Any) -> float:
        found = attack.run_attack()
        return above(found.df_train_user["score"], found.df_test_user["score"])

    population = frame(~members, odds=False)
    half = len(population) // 2
    return {
        "LiRA, offline": auc(
            LiraAttack(
                frame(members, odds=True),
                frame(~members, odds=True),
                aggregation,
                std_dev_type="shadows_out",
                offline_shadows_evals_in=True,
            )
        ),
        "RMIA, offline": auc(
            RmiaAttack(
                frame(members, odds=False),
                population[half:],
                population[:half],
                aggregation,
                num_reference_models=references.shape[1],
            )
        ),
    }


def stat_dp(given: Arrays) -> Found:
    from pystatdp.hypotest import test_statistics
    from pystatdp.selectors import select_event

    if given["task"] != "pair" or given["delta"]:
        return {}
    both = [given["one"].tolist(), given["other"].tolist()]
    chosen = [iter(draws[: len(draws) // 2]) for draws in both]
    half = len(both[0]) - len(both[0]) // 2

    class Pool:
        imap_unordered = staticmethod(map)

    def algorithm(which: int) -> float:
        return next(chosen[which], both[which][0])

    *_, event = select_event(
        algorithm, [(0, 1, {})], float(given["stated"]), half - 1, Pool(), True
    )
    (among,) = event if isinstance(event, tuple) else (event,)

    def count(draws: list[float]) -> int:
        held = np.array(draws[-half:])
        inside = held == among if np.isscalar(among) else (held > among[0]) & (held < among[1])
        return int(inside.sum())

    many, few = sorted((count(draws) for draws in both), reverse=True)
    low, high = 0.0, 20.0
    for _ in range(30):  # the largest epsilon that is rejected
        middle = (low + high) / 2
        rejected = test_statistics(many, few, middle, half) <= float(given["level"])
        low, high = (middle, high) if rejected else (low, middle)
    return {"largest epsilon rejected": low}


def robustness_toolbox(given: Arrays) -> Found:
    if given["task"] != "members":
        return {}
    from art.attacks.inference.membership_inference import MembershipInferenceBlackBox
    from art.estimators.classification import BlackBoxClassifier

    classes = given["posteriors"].shape[1]
    nothing = BlackBoxClassifier(lambda x: np.ones((len(x), classes)) / classes, (1,), classes)
    members, found = given["members"], {}
    for kind in ("rf", "gb", "lr"):
        attack = MembershipInferenceBlackBox(nothing, attack_model_type=kind)
        taught, truth = given["shadow_members"], given["shadow_labels"]
        attack.fit(
            x=None,
            y=truth[taught],
            test_x=None,
            test_y=truth[~taught],
            pred=given["shadow_posteriors"][taught],
            test_pred=given["shadow_posteriors"][~taught],
        )
        scores = attack.infer(
            x=None, y=given["labels"], pred=given["posteriors"], probabilities=True
        ).ravel()
        found[f"black box, {kind}"] = above(scores[members], scores[~members])
    return found


SIDES: dict[str, Callable[[Arrays], Found]] = {
    "jax-privacy": jax_privacy,
    "opake-auditing": opake,
    "privacyguard-platform": privacy_guard,
    "pystatdp": stat_dp,
    "adversarial-robustness-toolbox": robustness_toolbox,
}


def above(members: Any, others: Any) -> float:
    """Compute Pr[a member's score is above another's], ties counted by half."""
    members, others = np.asarray(members), np.sort(np.asarray(others))
    below = np.searchsorted(others, members, "left") + np.searchsorted(others, members, "right")
    return float(below.mean() / 2 / len(others))


def run_peer(name: str, folder: Path) -> None:
    """Write what a peer finds in every file of arrays, and its seconds."""
    results = {}
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as arrays:
            given = {key: arrays[key] if arrays[key].ndim else arrays[key][()] for key in arrays}
        began = time.process_time()
        try:
            found: Any = SIDES[name](given)
        except Exception as error:  # the table says what a peer could not read
            found = {f"failed: {type(error).__name__}: {str(error)[:80]}": float("nan")}
        results[path.stem] = {"found": found, "seconds": time.process_time() - began}
    (folder / f"{name}.json").write_text(json.dumps(results))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run_peer(sys.argv[1], Path(sys.argv[2]))
