"""Bounds from fast cells (T6) for many N of one ranking, equal to those of geobounds.

Compiled where numba is installed; otherwise, and where a number is too great for the
compiled code, ``geobounds.regime.rounded_cell_counts`` itself.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int64

from geobounds.cells import arrange, require_resolution
from geobounds.head import HeadData
from geobounds.power import DotProducts, dot_products
from geobounds.regime import rounded_cell_counts
from geobounds.selection import Ranking, Selection

try:
    from empirical.kernels.cells_numba import count_cells
except ModuleNotFoundError:  # numba is an extra
    count_cells = None

__all__ = ["cell_counts"]

# Bounds of w^2 q + 2 w |t| below this leave every step finite.
_GREAT = 2.0**1000


def cell_counts(
    head: HeadData, ranking: Ranking, ns: Sequence[int], resolutions: Sequence[int]
) -> Int64[np.ndarray, "n_resolutions n_n 2"]:
    """Upper bounds on FP and FN from fast cells, for every N and number of cells.

    Parameters
    ----------
    head : HeadData
        A head with values.
    ranking : Ranking
        The order of selection of one query.
    ns : sequence of int
        Numbers of selected tokens, 1 <= N <= (number of candidates) - 1.
    resolutions : sequence of int
        Numbers of cells.

    Returns
    -------
    ndarray of int64, shape (n_resolutions, n_n, 2)
        ``fp_upper`` and ``fn_upper`` of ``rounded_cell_counts`` at each N.

    Raises
    ------
    ArgumentError
        An N is out of range, or a resolution is below that of the coarsest cells.
    HeadDataError
        The head has no values.

    Notes
    -----
    Statement T6. The operations in float64 and their order are those of geobounds, so
    the counts are the same, not merely close.
    """
    counts = np.empty((len(resolutions), len(ns), 2), dtype=np.int64)
    selections = [ranking.select(n, "cell_counts") for n in ns]
    for selection in selections:
        arrangement = arrange(selection, head.sink)
        require_resolution(min(resolutions), arrangement, "cell_counts")
    if not counts.size:
        return counts
    dots = [dot_products(head, selection) for selection in selections]
    if count_cells is None or not _moderate(dots):
        for k, (selection, x) in enumerate(zip(selections, dots, strict=True)):
            found = rounded_cell_counts(head, selection, resolutions, x)
            counts[:, k] = [(c.fp_upper, c.fn_upper) for c in found]
        return counts
    count_cells(
        dots[0].w,
        np.stack([x.t for x in dots]),
        dots[0].q,
        np.stack([x.t_radius for x in dots]),
        dots[0].q_radius,
        _position(selections[0], head.sink),
        np.array(ns, dtype=np.int64),
        np.array(resolutions, dtype=np.int64),
        counts,
    )
    return counts


def _moderate(dots: Sequence[DotProducts]) -> bool:
    """Whether no bound of any cell can leave the range of float64."""
    with np.errstate(all="ignore"):
        w, q = dots[0].w.max(), (dots[0].q + dots[0].q_radius).max()
        t = max((np.abs(x.t) + x.t_radius).max() for x in dots)
        return bool(w * w * q + 2 * w * t + q + t + w * w < _GREAT)


def _position(selection: Selection, sink: int | None) -> int:
    """Where the sink stands among the candidates, -1 if it is none."""
    if sink is None or not (selection.keys == sink).any():
        return -1
    return int(np.argmax(selection.keys == sink))
