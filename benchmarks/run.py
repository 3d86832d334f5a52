"""Time scans against the model's own forward, side by side in one process.

``python benchmarks/run.py --out bench`` prints ratios and writes ``bench/bench.json``,
``bench/bench.md`` and ``bench/bench.png``. Every figure is a median of runs taken in
turn; "forward" is the backbone with eager attention, without LM head.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import loops
import numpy as np
import torch
import vectorised

from empirical import capture, load
from empirical.corpora import cut_windows, load_corpus
from empirical.kernels import rows
from empirical.queries import QueryCollector, QueryGrid, query_rows

GRID = (1, 2, 4, 8, 16, 32, 64, 128, 256)
BLOCK = 128


def main():
    """Run what is asked for, or one length for a child process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--corpus", default="python-docs")
    parser.add_argument("--lengths", default="512,1024")
    parser.add_argument(
        "--growth", default="256,512,1024", help="up to 8192 takes long; empty: none"
    )
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", default="bench")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(one_scan(options, options.child)))
        return
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    found = {"machine": machine(), "speed": speed(), "ratios": [], "growth": []}
    for length in numbers(options.lengths):
        found["ratios"].append(compare(options, length, found["speed"]))
        print(as_table(found["ratios"][-1]), flush=True)
    for length in numbers(options.growth):
        # A process of its own, so that its peak memory is its own.
        command = [sys.executable, __file__, "--child", str(length)]
        command += ["--model", options.model, "--corpus", options.corpus]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        found["growth"].append(json.loads(run.stdout.splitlines()[-1]))
        print(found["growth"][-1], flush=True)
    grow = numbers(options.growth)
    found["by_n"] = by_n(options, grow[-1]) if grow else []
    found["exponents"] = exponents(found["growth"])
    text = "\n\n".join(as_table(x) for x in found["ratios"])
    for g in found["growth"]:
        peak = g["peak_bytes"] / 2**30
        spent = f"{g['seconds']:.1f} s, {peak:.2f} GiB"
        text += f"\n\n{g['length']} tokens, all queries: {spent}"
    if found["exponents"]:
        text += f"\n\ngrowth with the length: {found['exponents']}"
    (folder / "bench.md").write_text(text + "\n", encoding="utf-8")
    (folder / "bench.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    draw(found, folder / "bench.png")
    print(f"exponents: {found['exponents']}")


def numbers(text):
    """Return the numbers of a comma-separated list; none of an empty one."""
    return [int(x) for x in text.split(",") if x]


def machine():
    """Say what this was measured on, and how busy it was."""
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": os.getloadavg(),
        "torch": torch.__version__,
        "compiled": rows.compiled is not None,
    }


def speed():
    """Measure bandwidth and float32 rate, by a copy and a matrix product."""
    x = torch.zeros(2**26)
    y = torch.empty_like(x)
    copy = median(lambda: y.copy_(x), 5)
    a = torch.randn(2048, 2048)
    product = median(lambda: a @ a, 5)
    return {
        "bytes_per_second": 2 * x.nbytes / copy,
        "flop_per_second": 2 * 2048**3 / product,
    }


def median(function, repeats):
    """Return the median time of some runs, after one."""
    function()
    return statistics.median(seconds(function) for _ in range(repeats))


def seconds(function):
    """Return the time of one run."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def prepared(options, length):
    """Return the model with eager attention, and one window as a tensor."""
    model, tokenizer = load(options.model)
    model.set_attn_implementation("eager")
    corpus = load_corpus(options.corpus)
    window = cut_windows(corpus, tokenizer, count=1, length=length, bos=None, seed=0)
    return model, torch.tensor([window[0].ids])


def scan_of(model, ids, queries, *, ns=GRID, policies=("keep",), cells=None):
    """Return a function that runs one window and reduces it."""
    config = model.config.get_text_config()
    length = ids.shape[1]
    shape = (config.num_hidden_layers, config.num_attention_heads)
    grid = QueryGrid(
        shape,
        tuple(n for n in ns if n <= length - 2),
        length,
        query_rows(queries, length),
        policies,
        cells,
    )
    collector = QueryCollector(grid)

    def run():
        collector.start(0)
        options = {"queries": grid.queries, "block": BLOCK, "check": False}
        with capture(model, collector.receive, stream=True, **options):
            model.base_model(input_ids=ids, use_cache=False)
        return collector.data

    return run


@torch.no_grad()
def compare(options, length, speed):
    """Time scans, forwards and the two other ways, in turn."""
    model, ids = prepared(options, length)
    layers = []

    def keep(_, weights, values, *__):
        layers.append((weights[0].clone(), values[0].clone()))

    def forward():
        model.base_model(input_ids=ids, use_cache=False)

    def sdpa():
        model.set_attn_implementation("sdpa")
        forward()
        model.set_attn_implementation("eager")

    with capture(model, keep, queries="all", check=False):
        forward()
    depth, few = len(layers), layers[:: max(1, len(layers) // 3)]
    one = layers[len(layers) // 2]
    layers = []
    ways = {
        "forward, eager": (forward, 1),
        "forward, sdpa": (sdpa, 1),
        "last query, P R F inversions T2": (scan_of(model, ids, "last"), 1),
        "last query, and T6 with 9 cells": (scan_of(model, ids, "last", cells=9), 1),
        "every 8th query, and T6": (scan_of(model, ids, 8, cells=9), 1),
        "all queries, P R F inversions T2": (scan_of(model, ids, "all"), 1),
        # Of some layers; forward and capture are not part of these.
        "all queries by torch, analysis": (
            lambda: [vectorised.count_layer(w, v, GRID) for w, v in few],
            depth / len(few),
        ),
    }
    for function, _ in ways.values():
        function()
    times = {name: [] for name in ways}
    for _ in range(options.repeats):
        for name, (function, factor) in ways.items():
            times[name].append(factor * seconds(function))
    w, v = one[0].numpy(), one[1].numpy()
    # One head of one layer, once.
    spent = seconds(lambda: loops.count_layer(w[:1], v[:1], GRID))
    times["all queries by loops, analysis"] = [depth * len(w) * spent]
    medians = {k: statistics.median(x) for k, x in times.items()}
    base = medians["forward, eager"]
    scan = medians["all queries, P R F inversions T2"]
    counted = operations(model, length)
    return {
        "length": length,
        "load": os.getloadavg(),
        "seconds": medians,
        "least": {k: min(x) for k, x in times.items()},
        "ratio": {k: x / base for k, x in medians.items()},
        "analysis": (scan - base) / base,
        "analysis_seconds": scan - base,
        "operations": counted,
        # What the products and one reading of the maps take at this machine's rates.
        "least_possible": {
            "products": counted["flop"] / speed["flop_per_second"],
            "maps": counted["bytes"] / speed["bytes_per_second"],
        },
    }


def operations(model, length):
    """Count what the analysis of all queries cannot avoid: products and bytes."""
    config = model.config.get_text_config()
    d = getattr(config, "head_dim", None)
    d = d or config.hidden_size // config.num_attention_heads
    heads = config.num_hidden_layers * config.num_attention_heads
    visible = sum(min(i + 1, length) * sum(n <= i for n in GRID) for i in range(length))
    maps = 4 * heads * length * length
    return {"flop": 2 * d * heads * visible, "bytes": maps}


@torch.no_grad()
def by_n(options, length):
    """Time the scan of all queries against the number of N."""
    model, ids = prepared(options, length)
    found = []
    for count in (1, 3, 5, 7, 9):
        run = scan_of(model, ids, "all", ns=GRID[:count])
        found.append({"count": count, "seconds": median(run, 3)})
    return found


@torch.no_grad()
def one_scan(options, length):
    """Time one scan of all queries and one forward; give this process's peak memory."""
    import resource

    model, ids = prepared(options, length)
    scan = seconds(scan_of(model, ids, "all"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"length": length, "seconds": scan, "peak_bytes": peak}


def exponents(growth):
    """Fit seconds and peak bytes as powers of the length."""
    if len(growth) < 2:
        return {}
    x = np.log([g["length"] for g in growth])
    return {
        key: float(np.polyfit(x, np.log([g[key] for g in growth]), 1)[0])
        for key in ("seconds", "peak_bytes")
    }


def as_table(found):
    """Return the ratios of one length as a Markdown table, and what bounds them."""
    load = found["load"][0]
    lines = [f"{found['length']} tokens, load {load:.1f}", ""]
    lines += ["| | x forward | s | least s |", "|---|---|---|---|"]
    for name, ratio in found["ratio"].items():
        spent, least = found["seconds"][name], found["least"][name]
        lines.append(f"| {name} | {ratio:.2f} | {spent:.2f} | {least:.2f} |")
    spent, ratio = found["analysis_seconds"], found["analysis"]
    torch_way = found["seconds"]["all queries by torch, analysis"] / spent
    loop_way = found["seconds"]["all queries by loops, analysis"] / spent
    bound, counted = found["least_possible"], found["operations"]
    lines += [""]
    lines += [f"analysis of all queries: {spent:.2f} s, {ratio:.2f} x forward;"]
    lines += [f"torch takes {torch_way:.1f} x, loops {loop_way:.1f} x as long;"]
    rate, size = counted["flop"] / 1e9, counted["bytes"] / 1e9
    least = f"products ({rate:.0f} GFLOP) take {bound['products']:.2f} s, "
    least += f"reading all maps once ({size:.2f} GB) {bound['maps']:.2f} s"
    lines += [f"at this machine's rates its {least}"]
    return "\n".join(lines)


def draw(found, path):
    """Draw ratios, and time and memory against length."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    if found["ratios"]:
        ratio = found["ratios"][0]["ratio"]
        left.barh(list(ratio), list(ratio.values()), color="#0b5394")
        left.set_xscale("log")
        left.set_xlabel(f"x forward, {found['ratios'][0]['length']} tokens")
        left.invert_yaxis()
    lengths = [g["length"] for g in found["growth"]]
    middle.loglog(lengths, [g["seconds"] for g in found["growth"]], "o-", label="s")
    peaks = [g["peak_bytes"] / 2**30 for g in found["growth"]]
    middle.loglog(lengths, peaks, "s--", label="peak GiB")
    middle.set_xlabel("tokens")
    middle.legend()
    right.plot(
        [x["count"] for x in found["by_n"]], [x["seconds"] for x in found["by_n"]], "o-"
    )
    right.set_xlabel("number of N")
    right.set_ylabel("s")
    right.set_ylim(bottom=0)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
