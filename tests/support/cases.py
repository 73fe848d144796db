# SPDX-License-Identifier: BSL-1.0
"""Random cases: how many, and dice for each. A case does not depend on those before it.

ZARRBITS_CASES: how many; ZARRBITS_SEED: others; ZARRBITS_FIRST: the first case, to see one again.
scripts/ci/steps has a seed a day.
"""

import os
import random
import shutil

SEED = int(os.environ.get("ZARRBITS_SEED", "35"))
FIRST = int(os.environ.get("ZARRBITS_FIRST", 0))


def number_of_cases(usual):
    return int(os.environ.get("ZARRBITS_CASES", usual))


def dice_of(*case):
    """The same dice for the same case and seed."""
    return random.Random(" ".join(map(str, (SEED, *case))))


def each_case(folder, usual, check):
    """Calls `check` with dice and an empty folder."""
    number = number_of_cases(usual)
    for i in range(FIRST, FIRST + number):
        here = os.path.join(folder, f"case{i}")
        os.mkdir(here)
        try:
            check(dice_of(i), here)
        except BaseException:
            print(f"case {i}: to see it again, ZARRBITS_SEED={SEED} ZARRBITS_FIRST={i} ZARRBITS_CASES=1")
            raise
        shutil.rmtree(here)
    print(f"seed {SEED}: {number} cases")
