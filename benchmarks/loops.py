"""What one writes first: NumPy, one head, query and N at a time, float64."""

import numpy as np

__all__ = ["count_layer"]


def count_layer(weights, values, ns):
    """Return FP, FN and inversions, shape (3, n_heads, n_query, n_n); -1 for none.

    ``weights`` (n_heads, n_query, n_key) and ``values`` (n_kv_heads, n_key, d_head) of
    one causal layer.
    """
    n_heads, n_query, _ = weights.shape
    group = n_heads // len(values)
    counts = np.full((3, n_heads, n_query, len(ns)), -1, dtype=np.int32)
    for h in range(n_heads):
        v = values[h // group].astype(np.float64)
        for q in range(n_query):
            w = weights[h, q, : q + 1].astype(np.float64)
            contributions = w[:, None] * v[: q + 1]
            order = np.argsort(-w, kind="stable")
            for k, n in enumerate(ns):
                if n > q:
                    continue
                aggregate = contributions[order[:n]].sum(axis=0)
                distance = ((contributions - aggregate) ** 2).sum(axis=1)
                near, far = distance[order[:n]], np.sort(distance[order[n:]])
                counts[0, h, q, k] = (far <= near.max()).sum()
                counts[1, h, q, k] = (near >= far[0]).sum()
                counts[2, h, q, k] = np.searchsorted(far, near, side="right").sum()
    return counts
