"""Counts of every query row and N of one layer by torch, in float64 (T1, T8)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

__all__ = ["count_rows_torch"]

_UNIT = 2.0**-53
# Numbers in one temporary, 32 MiB; about eight such live at a time.
_CHUNK = 2**22


def count_rows_torch(
    weights: torch.Tensor,
    values: torch.Tensor,
    visible: torch.Tensor,
    ns: Sequence[int],
    sink: int | None,
    ranking: str,
    policies: Sequence[str],
    counts: np.ndarray,
    flags: np.ndarray,
) -> np.ndarray:
    """Count every row of a layer; say which entries the radius leaves open.

    Parameters
    ----------
    weights : tensor of float32, shape (n_heads, n_rows, n_key)
        Attention weights, on any device.
    values : tensor of float32, shape (n_kv_heads, n_key, d_head)
        Values.
    visible : tensor of bool, shape (n_rows, n_key)
        Which keys each row sees.
    ns : sequence of int
        Numbers of selected tokens.
    sink, ranking, policies
        As for ``rows.count_rows``.
    counts : ndarray of int32, shape (3, n_policies, n_heads, n_rows, n_n)
        Where FP, FN and inversions are written.
    flags : ndarray of uint8, shape (n_policies, n_heads, n_rows, n_n)
        Where boundary ties are written.

    Returns
    -------
    ndarray of bool, shape (n_policies, n_heads, n_rows, n_n)
        True where geobounds has to settle the entry.

    Notes
    -----
    Statement T8 in float64, which nothing of 32 bits under- or overflows.
    """
    n_heads, n_rows, n_key = weights.shape
    group = n_heads // len(values)
    open_ = np.zeros(flags.shape, dtype=bool)
    step = max(1, _CHUNK // n_key)
    for h in range(n_heads):
        v = values[h // group].double()
        for start in range(0, n_rows, step):
            rows = slice(start, min(start + step, n_rows))
            w = weights[h, rows].double()
            if not bool(torch.isfinite(w).all() & torch.isfinite(v).all()):
                open_[:, h, rows] = True  # geobounds names the number
                continue
            part = _Part(w, v, visible[rows], sink, ranking)
            for p, policy in enumerate(policies):
                for k, n in enumerate(ns):
                    at = (p, h, rows, k)
                    found = part.count(policy, n)
                    for c in range(3):
                        counts[(c, *at)] = found[c].cpu().numpy()
                    flags[at] = found[3].cpu().numpy()
                    open_[at] = found[4].cpu().numpy()
    return open_


class _Part:
    """Some rows of one head."""

    def __init__(
        self,
        w: torch.Tensor,
        v: torch.Tensor,
        seen: torch.Tensor,
        sink: Any,
        ranking: str,
    ) -> None:
        self.w, self.v, self.seen, self.sink, self.ranking = w, v, seen, sink, ranking
        self.q = (v * v).sum(dim=1)
        self.orders: dict[bool, Any] = {}

    def order(self, apart: bool) -> Any:  # noqa: FBT001
        """Return the rank of every key, and the sorted scores."""
        if apart not in self.orders:
            score = self.w if self.ranking == "weight" else self.w * self.w * self.q
            score = score.masked_fill(~self.seen, -1)
            if apart:
                score[:, self.sink] = -1
            best = torch.sort(score, dim=1, descending=True, stable=True)
            place = torch.empty_like(best.indices)
            index = torch.arange(score.shape[1], device=score.device).expand_as(place)
            place.scatter_(1, best.indices, index)
            self.orders[apart] = place, best.values
        return self.orders[apart]

    def count(self, policy: str, n: int) -> tuple[torch.Tensor, ...]:
        """Return FP, FN, inversions, boundary tie and doubt of each row."""
        w, v, d = self.w, self.v, self.v.shape[1]
        seen = self.seen
        apart = policy != "keep" and self.sink is not None
        if apart and policy == "drop":
            seen = seen.clone()
            seen[:, self.sink] = False
        usable = seen.sum(dim=1) > n
        if n >= seen.shape[1]:
            none = torch.full((len(w),), -1)
            return none, none, none, none == 0, none == 0
        place, scores = self.order(apart)
        chosen = (place < n) & seen
        rest = seen & ~chosen
        mine = torch.where(chosen, w, 0)
        t = (mine @ v) @ v.T
        bulk = (mine @ v.abs()) @ v.abs().T
        square = w * w * self.q
        power = square - 2 * w * t
        # Eight roundings more than T8 counts: the ends' own, and a margin.
        radius = (n + d + 12) * _UNIT * (square + 2 * w * bulk)
        lo, hi = power - radius, power + radius
        infinity = torch.inf
        s_lo, s_hi = (torch.where(chosen, x, -infinity) for x in (lo, hi))
        u_lo, u_hi = (torch.where(rest, x, infinity) for x in (lo, hi))
        top_lo, top_hi = (x.amax(dim=1, keepdim=True) for x in (s_lo, s_hi))
        low_lo, low_hi = (x.amin(dim=1, keepdim=True) for x in (u_lo, u_hi))
        upper = [(u_lo <= top_hi).sum(dim=1), (s_hi >= low_lo).sum(dim=1)]
        lower = [(u_hi <= top_lo).sum(dim=1), (s_lo >= low_hi).sum(dim=1)]
        for ends, s, u in ((upper, s_hi, u_lo), (lower, s_lo, u_hi)):
            order = torch.sort(u, dim=1).values
            reached = torch.searchsorted(order, s, right=True)
            ends.append(torch.where(chosen, reached, 0).sum(dim=1))
        doubt = torch.zeros_like(usable)
        for most, least in zip(upper, lower, strict=True):
            doubt |= most != least
        last_in, first_out = scores[:, n - 1], scores[:, n]
        tied = (last_in == first_out) & (first_out >= 0)
        if self.ranking == "contribution":
            # Scores of three and d roundings this near do not say who comes first;
            # of zeros and tiny numbers nothing is said.
            near = last_in * (1 - (d + 8) * 2 * _UNIT) <= first_out
            doubt |= near & (first_out >= 0)
        found = [torch.where(usable, x, -1) for x in upper]
        return found[0], found[1], found[2], tied & usable, doubt & usable
