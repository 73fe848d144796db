# SPDX-License-Identifier: BSL-1.0
"""What h5py's indexing of a dataset means: boxes with steps, and one list of indexes or a boolean mask at a time."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

_DENSE = 4  # a list with a quarter or more of the elements between its ends is read with those between


class Axis(NamedTuple):
    """The elements of one dimension: first, first + step, ..., `size` of them; or those of a list."""

    first: int
    size: int
    step: int
    indexes: Any = None
    is_number: bool = False  # the result has no such dimension


def _index(number: int, length: int) -> Axis:
    if not -length <= number < length:
        raise IndexError(
            f"Index ({number}) out of range for (0-{length - 1})"
            if length
            else f"Index ({number}) out of range for empty dimension"
        )
    return Axis(number % length, 1, 1, is_number=True)


def _slice(piece: slice, length: int) -> Axis:
    if piece.step is not None and operator.index(piece.step) < 1:
        raise ValueError(f"Step must be >= 1 (got {piece.step})")
    first, stop, step = piece.indices(length)
    return Axis(first, max(0, -(-(stop - first) // step)), step)


def _list(piece: Any, length: int) -> Axis:
    indexes = np.asarray(piece)
    if indexes.ndim != 1:
        raise TypeError("Indexing arrays must have a single dimension")
    if indexes.dtype.kind == "b":
        if len(indexes) != length:
            raise TypeError(f"Boolean indexing array has incompatible shape: {len(indexes)} for {length}")
        indexes = indexes.nonzero()[0]
    elif indexes.size == 0:
        indexes = indexes.astype(np.int64)
    elif indexes.dtype.kind not in "iu":
        raise TypeError(f"Indexing arrays must have integer or boolean dtypes, not {indexes.dtype}")
    indexes = indexes.astype(np.int64)
    if ((indexes < -length) | (indexes >= length)).any():
        raise IndexError(f"Fancy indexing out of range for (0-{length - 1})")
    indexes = np.where(indexes < 0, indexes + length, indexes)
    if (np.diff(indexes) <= 0).any():
        raise TypeError("Indexing elements must be in increasing order")
    return Axis(0, len(indexes), 1, indexes)


def axes_of(selection: tuple[Any, ...], shape: tuple[int, ...]) -> list[Axis]:
    """One for each dimension."""
    ellipses = sum(piece is Ellipsis for piece in selection)
    if ellipses > 1:
        raise ValueError("Only one ellipsis may be used.")
    if not ellipses:
        selection = (*selection, Ellipsis)
    if len(selection) - 1 > len(shape):
        raise TypeError(f"{len(selection) - 1} indexing arguments for {len(shape)} dimensions")
    middle = next(i for i, piece in enumerate(selection) if piece is Ellipsis)
    whole = [slice(None)] * (len(shape) - (len(selection) - 1))
    pieces = [*selection[:middle], *whole, *selection[middle + 1 :]]
    axes = []
    for piece, length in zip(pieces, shape):
        if isinstance(piece, slice):
            axes.append(_slice(piece, length))
        elif isinstance(piece, (bool, np.bool_)) or piece is None or isinstance(piece, str):
            raise TypeError(f"Illegal index {piece!r} (must be a slice, number, or list of numbers)")
        elif hasattr(piece, "__index__") and not (isinstance(piece, np.ndarray) and piece.ndim > 0):
            axes.append(_index(operator.index(piece), length))
        else:
            axes.append(_list(piece, length))
    if sum(axis.indexes is not None for axis in axes) > 1:
        raise TypeError("Only one indexing vector or array is currently allowed for fancy indexing")
    return axes


def runs_of(indexes: Any) -> Iterator[tuple[int, Axis, Any]]:
    """(place in the list, what to read, which of it): the boxes to read for an increasing list of indexes."""
    begin = 0
    while begin < len(indexes):
        # as many as lie densely
        dense = np.flatnonzero((indexes[begin:] - indexes[begin] + 1) > _DENSE * np.arange(1, len(indexes) - begin + 1))
        end = begin + (int(dense[0]) if len(dense) else len(indexes) - begin)
        end = max(end, begin + 1)
        part = indexes[begin:end]
        yield begin, Axis(int(part[0]), int(part[-1] - part[0]) + 1, 1), part - part[0]
        begin = end


def split_fields(selection: tuple[Any, ...]) -> tuple[list[str], tuple[Any, ...]]:
    """Names of a compound's members among the arguments, and the others."""
    names = [piece for piece in selection if isinstance(piece, str)]
    return names, tuple(piece for piece in selection if not isinstance(piece, str))


def result_shape(axes: Sequence[Axis]) -> tuple[int, ...]:
    return tuple(axis.size for axis in axes if not axis.is_number)
