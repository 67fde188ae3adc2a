"""Votes of users for the items of a public list: each has those of all its documents, clipped.

The sums over all users are released once, with the noise of `quietcorpus.mechanisms.votes.votes`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..encoding import Value
from ..users.clipped_sum import STEPS, clipped
from ..users.group_norms import GroupNorms, norm_of_group
from .votes import Votes


@dataclass(frozen=True)
class UserVotes:
    """Users' votes, whose sums `documents` releases with its noise.

    A user's documents vote as `documents` says, and their votes are added up over all items and
    strata together: one vector, however many labels the documents have. If it is longer than the
    norm of the user's group it is scaled down to that norm, and rounded to whole numbers at random
    (`mechanisms.users.clipped_sum.clipped`). A user of one document and the largest budget
    gives exactly that document's votes; a user who has written more gives no more in total.

    Attributes:
        documents: the votes of a document, and the noise.
        norms: the norm of each group of users, at that noise.

    Guarantee:
        A user's vector is a function of that user's documents, group and random bits alone.
        Its squares add up to at most the square of the group's norm, in integers, over all items
        and strata together, and no norm is above STEPS.
        Adding or removing one user, with all documents, changes the exact sums by that vector and
        by nothing else: the L2 sensitivity is the group's norm.
        The noisy sums are (epsilon, delta)-differentially private for adding or removing one user
        of a group, with the epsilon of `GroupNorms.spent`, and so is all that is made of them and
        of public knowledge.

    Proof of the sensitivity: let C and C' be corpora that are equal but for the user u, whose
    documents are in C alone. Every other user has the same documents in both, hence by the first
    sentence the same vector for the same random bits, which are drawn by the user's own address.
    The sums over C are those over C' plus u's vector v, entry by entry, as whole numbers add up
    without rounding. By the second sentence |v| <= norm <= STEPS. This holds for all random bits of
    u and of the others, and the noise is independent of them: so for each of their values it hides
    v as the Gaussian mechanism of sensitivity |v| does, and a mixture of such pairs keeps to the
    same (epsilon, delta).

    Raises ValueError if the norms are for other noise.
    """

    documents: Votes
    norms: GroupNorms

    def __post_init__(self) -> None:
        if self.documents.noise != self.norms.mechanism:
            raise ValueError("the norms are for other noise than that of documents' votes")

    @property
    def stage_parameters(self) -> dict[str, Value]:
        """Return what users' vectors depend on besides the documents and how groups are known."""
        return {**self.documents.stage_parameters, "most": tuple(self.norms.most.values())}

    def clipped(
        self, votes: npt.NDArray[np.int64], group: int, dither: npt.NDArray[np.uint16]
    ) -> npt.NDArray[np.int64]:
        """Clip one user's votes, the sums over all of the user's documents.

        `votes` are int64 (n,), those that are not zero. `group` is the number of the user's group,
        in the order of the norms, and `dither` has 16 random bits for every vote. The result is
        int64 (n,).
        """
        most = norm_of_group(group, tuple(self.norms.most.values()))
        return clipped(votes / STEPS, dither, most).astype(np.int64)
