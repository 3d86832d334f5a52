"""Counts of captured rows at once: those of geobounds, for a real model."""

import numpy as np
import pytest
import torch
from battery import POLICIES
from test_fast_rows import RANKINGS, reference

from empirical import capture, load
from empirical.corpora import cut_windows, load_corpus
from empirical.kernels.rows import LayerKeys, count_rows

LENGTH = 256
ROWS = (1, 7, 40, 99, 100, 180, 255)
NS = (1, 2, 4, 8, 16, 64, 128)
LAYERS = (0, 3, 14, 29)


@pytest.fixture(scope="module")
def captured():
    """Weights of some rows and values of some layers of SmolLM2 on a real text."""
    model, tokenizer = load("smollm2")
    corpus = load_corpus("python-docs")
    window = cut_windows(corpus, tokenizer, count=1, length=LENGTH, bos=1)[0]
    found = {}

    def receive(layer, weights, values, visible):
        if layer in LAYERS:
            found[layer] = weights[0].numpy(), values[0].numpy(), visible[0].numpy()

    with torch.no_grad(), capture(model, receive, queries=ROWS, check=False):
        model.base_model(input_ids=torch.tensor([window.ids]), use_cache=False)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("fast", [True, False])
def test_counts_of_captured_rows_are_those_of_geobounds(captured, fast):
    """Every policy and ranking, with the model's own mask and under a window."""
    compared = 0
    for weights, values, visible in captured.values():
        keys = LayerKeys(values)
        recent = visible & (np.arange(LENGTH) > np.array(ROWS)[:, None] - 60)
        for shown in (visible, recent):
            w = np.where(shown, weights, 0)
            for ranking in RANKINGS:
                given = (w, keys, shown, NS)
                found = count_rows(
                    *given, ranking=ranking, policies=POLICIES, fast=fast
                )
                counts = (
                    found.false_positives,
                    found.false_negatives,
                    found.inversions,
                    found.boundary_tie,
                )
                expected = reference(w, values, shown, NS, 0, ranking, POLICIES)
                for one, other in zip(counts, expected, strict=True):
                    assert np.array_equal(one, other)
                compared += int((expected[0] >= 0).sum())
    assert compared >= 10_000
