"""Tidy frames: one row a statistic, its coordinates in columns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from empirical.metrics import CLASSES
from empirical.study.data import NO_CLASS
from empirical.study.resample import bounds

__all__ = ["CLASS_NAMES", "class_names", "joined", "tidy"]

CLASS_NAMES = ("all", *CLASSES)  # groups of heads in a table


def tidy(
    statistic: np.ndarray,
    n_documents: int,
    axes: Mapping[str, Iterable[Any]],
    name: str = "value",
    **constant: Any,
) -> pd.DataFrame:
    """Return one row for each place of a statistic, with its interval.

    Parameters
    ----------
    statistic : ndarray of shape (rows, ...)
        The data first, then the replicates.
    n_documents : int
        Number of documents resampled.
    axes : dict
        Labels of every axis after the first, in order, by column name.
    name : str
        Column of the value; ``low`` and ``high`` follow it.
    **constant
        Columns with one value, before the axes.
    """
    low, high = bounds(statistic, n_documents)
    index = pd.MultiIndex.from_product(
        [list(labels) for labels in axes.values()], names=list(axes)
    )
    frame = index.to_frame(index=False)
    for place, (column, value) in enumerate(constant.items()):
        frame.insert(place, column, value)
    ends = {name: statistic[0], "low": low, "high": high}
    return frame.assign(**{column: x.ravel() for column, x in ends.items()})


def joined(frames: Sequence[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """Stack frames, with exactly these columns in this order."""
    return pd.concat(frames, ignore_index=True)[list(columns)]


def class_names(codes: np.ndarray) -> list[str]:
    """Return the name of each code; "none" for a head without class."""
    return ["none" if code == NO_CLASS else CLASSES[code] for code in codes.tolist()]
