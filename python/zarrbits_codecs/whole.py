# SPDX-License-Identifier: BSL-1.0
import numbers


def is_whole(value: object) -> bool:
    """Whether it is an integer, of Python's or of numpy's: no bool, and no 11.0."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
