"""Hand-made tables with the columns of a study's, to draw without scans."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from empirical.study.style import About

N = (1, 2, 4, 8, 16, 32, 64)
CLASSES = ("Retriever", "Mixer", "Reset")
ATTRS: dict[str, Any] = {
    "model": "folder/<b>tiny & co</b>",
    "model_type": "llama",
    "model_fingerprint": "sha256:0123456789abcdef",
    "corpus": "text <i>.txt",
    "corpus_sha256": "fedcba",
    "corpus_documents": 9,
    "documents": ["one @0", "two @0"],
    "attention": "eager",
    "device": "cpu",
    "dtype": "float32",
    "bos": "token 1 first in every window: the tokenizer's BOS <s>",
    "queries": "last",
    "spec": {"length": 24, "seed": 5, "windows": 9},
    "versions": {"numpy": "2"},
}
ABOUT = About(ATTRS, 9, 9, N, layers=3, heads=2)
BOUNDS = {
    "t4_all": ("8 numbers (T4)", 8),
    "t2_joint": ("inversions (T2 b)", 1),
    "t6_3": ("3 cells (T6)", 6),
    "t6_9": ("9 cells (T6)", 18),
}


def _with_interval(keys: dict[str, tuple[Any, ...]], name: str = "value") -> Any:
    """Return one row for every combination, with a number and its interval."""
    frame = pd.DataFrame(list(product(*keys.values())), columns=list(keys))
    value = np.linspace(0.05, 0.95, len(frame))
    return frame.assign(**{name: value, "low": value - 0.04, "high": value + 0.04})


def hand_made() -> dict[str, pd.DataFrame]:
    """Return every table of a study of three layers of two heads."""
    layers, heads = (0, 1, 2), (0, 1)
    policies = ("keep", "drop", "compete")
    separability = _with_interval(
        {
            "distance": ("euclidean", "cosine"),
            "ranking": ("weight", "contribution", "random"),
            "n": N,
        }
    )
    value = separability["value"]
    by_head = pd.DataFrame(list(product(layers, heads)), columns=["layer", "head"])
    by_head["head_class"] = ["Retriever", "Mixer", "Reset"] * 2
    groups = [("all", "all"), *(("layer", x) for x in layers)]
    groups += [("head_class", x) for x in CLASSES]
    tightness = pd.concat(
        [
            _with_interval(
                {
                    "enclosure": (key,),
                    "label": (label,),
                    "numbers": (numbers,),
                    "sink_policy": ("keep", "drop"),
                    "group": (group,),
                    "which": (which,),
                    "n": N,
                }
            )
            for key, (label, numbers) in BOUNDS.items()
            for group, which in groups
        ],
        ignore_index=True,
    )
    needed = _with_interval(
        {"sink_policy": ("keep", "drop"), "n": N, "numbers": (6, 10)}, "share"
    )
    collapse = pd.DataFrame(
        list(product(layers, heads, N)), columns=["layer", "head", "n"]
    )
    numbers = np.linspace(0, 1, len(collapse))
    shares = _with_interval({"layer": (-1, *layers), "head_class": CLASSES}, "share")
    regime = pd.DataFrame(
        list(product(("norm spread", "cosine mean", "cosine least"), (-1, *layers))),
        columns=["quantity", "layer"],
    )
    removed = (
        "none",
        "norms",
        "cosines",
        "cosines, nonnegative",
        "norms and cosines",
        "norms and cosines, nonnegative",
    )
    causes = ("cosine spread", "norm spread", "sink", "negative common cosine")
    selected = pd.DataFrame({"n": N}).assign(
        selected_share=0.5, f_keep=0.2, f_drop=0.5, ratio=0.4, low=0.3, high=0.5
    )
    found = pd.DataFrame(
        list(product(("with", "without"), layers)), columns=["bos", "layer"]
    )
    return {
        "separability": separability.assign(least=value - 0.02, greatest=value + 0.02),
        "policies": _with_interval(
            {
                "head_class": ("all", *CLASSES),
                "sink_policy": policies,
                "metric": ("precision", "recall", "f"),
                "n": N,
            }
        ),
        "sink_selected": selected,
        "sink_geometry": by_head.assign(
            norm_ratio=[0.5, 2.0, 3.0, 40.0, np.inf, 5.0],
            cosine=[-0.5, 0.2, 0.0, -0.9, 0.4, np.nan],
        ),
        "classes": by_head.assign(current_share=0.5, sink_share=0.3, other_share=0.2),
        "class_shares": shares.assign(share=1 / 3),
        "agreement": pd.DataFrame(
            {
                "comparison": ["without BOS", "another text"],
                "kappa": [0.7, np.nan],
                "low": [0.5, np.nan],
                "high": [0.8, np.nan],
                "heads": 6,
            }
        ),
        "alignment": _with_interval(
            {"head_class": CLASSES, "toward": ("sink", "current token")}
        ),
        "tightness": tightness,
        "numbers_needed": needed.drop(columns=["low", "high"]),
        "removals": _with_interval(
            {"sink_policy": ("keep", "drop"), "removal": removed, "n": N}
        ),
        "causes": _with_interval({"cause": causes, "n": N}, "gain"),
        "collapse": collapse.assign(
            predicted=numbers, measured=numbers[::-1], condition=numbers > 0.5
        ),
        "regime": regime.assign(
            q10=-0.1, median=0.1, q90=[*[0.3] * (len(regime) - 1), np.inf]
        ),
        "bos": _with_interval(
            {
                "bos": ("with", "without"),
                "policy": ("keep", "drop", "drop found sink"),
                "n": N,
            }
        ),
        "found_sink": found.assign(position_0_share=0.5),
    }
