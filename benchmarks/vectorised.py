"""A competent torch script: all heads and queries of a layer at once, float32."""

import torch

__all__ = ["count_layer"]


def count_layer(weights, values, ns):
    """Return FP, FN and inversions, shape (3, n_heads, n_query, n_n); -1 for none.

    ``weights`` (n_heads, n_query, n_key) and ``values`` (n_kv_heads, n_key, d_head) of
    one causal layer.
    """
    n_heads, n_query, n_key = weights.shape
    v = values.repeat_interleave(n_heads // len(values), dim=0)
    seen = torch.ones(n_query, n_key, dtype=torch.bool).tril()
    order = torch.where(seen, weights, -1).argsort(dim=-1, descending=True, stable=True)
    place = torch.empty_like(order).scatter_(
        -1, order, torch.arange(n_key).expand_as(order)
    )
    norms = (v * v).sum(dim=-1)[:, None]
    counts = torch.full((3, n_heads, n_query, len(ns)), -1, dtype=torch.int32)
    for k, n in enumerate(ns):
        if n >= n_key:
            continue
        chosen = place < n
        rest = seen & ~chosen
        chosen = chosen & seen
        aggregate = (weights * chosen) @ v
        t = aggregate @ v.transpose(1, 2)
        power = weights * (weights * norms - 2 * t)  # the order of distances
        near = torch.where(chosen, power, -torch.inf)
        far = torch.where(rest, power, torch.inf)
        fp = (far <= near.amax(dim=-1, keepdim=True)).sum(dim=-1)
        fn = (near >= far.amin(dim=-1, keepdim=True)).sum(dim=-1)
        pairs = torch.searchsorted(far.sort(dim=-1).values, near, right=True)
        found = torch.stack([fp, fn, (pairs * chosen).sum(dim=-1)]).int()
        counts[..., n:, k] = found[..., n:]
    return counts
