"""Mechanisms with a fault each, of which an audit of what they promise must tell.

The faults in a kind of release are in the module of its name, `faulty_words` and so on.
"""

from __future__ import annotations

import faulty_bags
import faulty_embeddings
import faulty_overview
import faulty_public_texts
import faulty_sentences
import faulty_user_histograms
import faulty_words
from planting import Faults

KINDS = (
    *(faulty_bags, faulty_words, faulty_sentences, faulty_embeddings, faulty_public_texts),
    *(faulty_user_histograms, faulty_overview),
)
FAULTS: Faults = {name: fault for kind in KINDS for name, fault in kind.FAULTS.items()}
assert len(FAULTS) == sum(len(kind.FAULTS) for kind in KINDS)
