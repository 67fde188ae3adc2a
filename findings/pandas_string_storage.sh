#!/bin/bash
# pandas 3.1.1, pyarrow 25.0.1, Python 3.11: what upper case and a digit are depends on whether pyarrow is installed.
#
# Guess: pandas 3 keeps text in Arrow if pyarrow is there, and in Python objects otherwise; methods of `str` give the same either way, which
#   is Python's answer.
# Seen: over all letters of Unicode, `upper`, `title`, `capitalize` and `swapcase` differ for some hundred letters ("ß" is upper-cased to
#   "ẞ" by Arrow and to "SS" by Python), `isdigit` for hundreds of signs (½ is a digit by Arrow), `isnumeric`, `islower` and `isupper` for
#   dozens or more, and `lower` for a final sigma. `casefold`, `isalpha`, `len` agree.
# Met: normalising words before a vocabulary is joined or counted: the words of a release made in a small image without pyarrow do not meet
#   those of one made with it. `pd.StringDtype("python")` fixes the choice.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pandas==3.1.1 pyarrow==25.0.1
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import unicodedata

import pandas as pd

letters = [chr(code) for code in range(0x110000)]
words = [letter for letter in letters if unicodedata.category(letter) not in ("Cs", "Cn", "Co")]
words += ["straße", "ΟΔΥΣΣΕΥΣ"]
frame = {kind: pd.Series(words, dtype=pd.StringDtype(kind, na_value=float("nan"))) for kind in ("python", "pyarrow")}
assert pd.Series(["a"]).dtype == frame["pyarrow"].dtype


def differ(method: str) -> list[str]:
    """Words of which the two say something else."""
    one, other = (getattr(each.str, method)().tolist() for each in frame.values())
    return [word for word, a, b in zip(words, one, other) if a != b]


for method in ("upper", "title", "capitalize", "swapcase", "isdigit", "isnumeric", "islower", "isupper", "lower"):
    found = differ(method)
    print(f"{method}: {len(found)}, such as {found[0]!r}")
    assert found
assert "straße" in differ("upper") and "½" in differ("isdigit") and "ΟΔΥΣΣΕΥΣ" in differ("lower")
assert not any(differ(method) for method in ("casefold", "isalpha", "isdecimal", "len", "strip"))
PROGRAM
