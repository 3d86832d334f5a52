"""What a scan of many queries will take, before it runs: time, memory, disk."""

import os
import resource
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import torch

from empirical.capture import capture
from empirical.errors import ScanError
from empirical.queries import QueryCollector, QueryGrid, query_rows

__all__ = ["BLOCK", "Cost", "free_memory", "query_cost", "require_memory"]

BLOCK = 128  # query rows whose maps exist at once
_PROBES = (256, 512)  # tokens of the runs that are timed
_WARM = 64
# Of a block: scores, weights and what softmax makes between them.
_MAPS = 4
# Of a token: hidden states, queries, keys, values and the widest layer.
_STATES = 12


@dataclass(frozen=True)
class Cost:
    """Seconds, bytes of memory beyond what is in use, bytes on disk at most."""

    seconds: float
    memory: int
    disk: int

    def __str__(self) -> str:
        """In words."""
        return (
            f"about {self.seconds:.0f} s, {self.memory / 2**30:.1f} GiB more memory "
            f"and at most {self.disk / 2**20:.0f} MiB on disk"
        )


def query_cost(model: Any, grid: QueryGrid, queries: str | int, windows: int) -> Cost:
    """Estimate a scan from two short runs of the model and of the analysis.

    Parameters
    ----------
    model : PreTrainedModel
        As returned by ``load``.
    grid : QueryGrid
        What is to be measured.
    queries : "last", "all" or int
        Which queries.
    windows : int
        Number of windows.

    Returns
    -------
    Cost
        The time of a window is a n + b n^2 in its length n, through two measured
        points; a window no longer than the greater of them is measured itself.
    """
    config = model.config.get_text_config()
    length = grid.length
    size = grid.bytes_a_window
    _, n_heads = grid.shape
    block = min(2 * BLOCK - 1, length)
    maps = _MAPS * 4 * n_heads * block * length
    # The model's own mask, as float and as bool, and what is made of it.
    masks = 9 * length * length
    widest = max(config.hidden_size, getattr(config, "intermediate_size", 0) or 0)
    states = 4 * _STATES * length * widest
    memory = maps + masks + states + 2 * size * (windows + 1)
    short, long = (min(length, n) for n in _PROBES)
    _run(model, grid, queries, min(length, _WARM))
    late = _run(model, grid, queries, long)
    seconds = late
    if long < length:
        early = _run(model, grid, queries, short)
        square = (late / long - early / short) / (long - short)
        linear = late / long - square * long
        square, linear = max(square, 0.0), max(linear, 0.0)
        seconds = linear * length + square * length**2
    return Cost(windows * seconds, memory, windows * size)


def _run(model: Any, grid: QueryGrid, queries: str | int, length: int) -> float:
    """Return the seconds of a shorter window of the same kind."""
    step = queries if isinstance(queries, str) else min(queries, length)
    part = replace(
        grid,
        length=length,
        n=tuple(n for n in grid.n if n <= length - 2) or (1,),
        queries=query_rows(step, length),
    )
    collector = QueryCollector(part)
    collector.start(0)
    ids = torch.arange(length, device=model.device)[None]
    ids = ids % model.config.get_text_config().vocab_size
    options: dict[str, Any] = {"queries": part.queries, "block": BLOCK, "check": False}
    started = time.perf_counter()
    with torch.no_grad(), capture(model, collector.receive, stream=True, **options):
        model.base_model(input_ids=ids, use_cache=False)
    return time.perf_counter() - started


def free_memory() -> int | None:
    """Return the bytes that may still be taken, None where that is not known."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123
            for line in file:
                if line.startswith("MemAvailable:"):
                    free = 1024 * int(line.split()[1])
                    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
                    return free if limit == resource.RLIM_INFINITY else min(free, limit)
    except (OSError, ValueError, IndexError):
        pass
    if sys.platform != "linux":
        return None
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def require_memory(cost: Cost) -> None:
    """Refuse a scan for which memory would not suffice.

    Raises
    ------
    ScanError
        With what is needed and what is there.
    """
    free = free_memory()
    if free is not None and cost.memory > free:
        msg = (
            f"scan: memory must hold {cost.memory / 2**30:.1f} GiB more, got "
            f"{free / 2**30:.1f} GiB free. Choose a smaller length, fewer queries "
            "(every=K) or fewer windows."
        )
        raise ScanError(msg)
