"""Every claim of the core about one head, compared with the exact oracle.

``check_head`` takes the package under test as an argument, so that the same battery
judges the library and its deliberately wrong versions.
"""

from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
from cases import CaseHead

from geobounds.exact import OracleResult, oracle

POLICIES = ("keep", "drop", "compete")


def check_head(package: ModuleType, case: CaseHead, seed: int) -> int:
    """Check all policies and several N of one head; return the number of cases."""
    rng = np.random.default_rng(seed)
    head = package.head.HeadData(
        case.weights, case.values, visible=case.visible, sink=case.sink
    )
    count = 0
    for policy in POLICIES:
        order = package.selection.rank(head, -1, "weight", policy)
        largest = order.n_candidates - 1
        if largest < 1:
            continue
        for n in sorted({1, largest, int(rng.integers(1, largest + 1))}):
            truth = check_measure(package, head, case, n, policy, "weight", "euclidean")
            check_bounds(package, head, order.select(n), truth, rng)
            count += 1
        other = ("contribution", "euclidean"), ("weight", "cosine")
        ranking, distance = other[int(rng.integers(0, 2))]
        check_measure(package, head, case, n, policy, ranking, distance)
    return count


def check_measure(
    package: ModuleType,
    head: Any,
    case: CaseHead,
    n: int,
    policy: str,
    ranking: str,
    distance: str,
) -> OracleResult:
    """Measured counts, metrics, selection and ties equal the oracle's, exactly."""
    truth = oracle(
        case.weights.tolist(),
        case.values.tolist(),
        case.visible.tolist(),
        case.sink,
        n,
        ranking=ranking,
        sink_policy=policy,
        distance=distance,
    )
    options = {"ranking": ranking, "sink_policy": policy, "distance": distance}
    measure = package.separability.measure
    m = measure(head, n, **options)
    assert tuple(m.selected) == truth.selected
    assert m.boundary_tie == truth.boundary_tie
    assert (m.false_positives, m.false_negatives, m.inversions) == (
        truth.false_positives,
        truth.false_negatives,
        truth.inversions,
    )
    for name in ("precision", "recall", "f_score"):
        interval = getattr(m, name)
        assert interval.lower == interval.upper == getattr(truth, name)
    loose = measure(head, n, settle_doubt=False, **options).counts
    for name, true in (
        ("fp", truth.false_positives),
        ("fn", truth.false_negatives),
        ("inversions", truth.inversions),
    ):
        lower, upper = getattr(loose, f"{name}_lower"), getattr(loose, f"{name}_upper")
        assert lower <= true <= upper, f"T8: {name}"
    return truth


def check_bounds(
    package: ModuleType,
    head: Any,
    selection: Any,
    truth: OracleResult,
    rng: np.random.Generator,
) -> None:
    """No bound exceeds the true metric; the finest cells attain it."""
    n, m = selection.n, len(selection.unselected)
    b = package.bounds.inversion_bounds(n, m, truth.inversions)
    assert b.precision <= truth.precision, "T2a P"
    assert b.recall <= truth.recall, "T2a R"
    assert b.f_separate <= b.f_joint <= truth.f_score, "T2b F"

    regime = package.regime
    counts = package.separability.interval_counts
    size = n + m

    def certified(cuts: Any) -> Any:
        fitted = regime.fit_cells(head, selection, split=cuts)
        regime.check_cells(fitted, head, selection)
        return fitted, counts(fitted.enclosure(head, selection))

    some = rng.choice(size - 1, int(rng.integers(0, size)), replace=False) + 1
    coarse = sorted(some.tolist())
    fine = sorted({*coarse, int(rng.integers(1, size))})
    fitted, first = certified(coarse)
    _, second = certified(fine)
    finest, third = certified(range(1, size))
    sink_cell = [head.sink] if head.sink in set(selection.keys.tolist()) else []
    members = cell_members(package, fitted, head, selection)
    assert all(len(c) == 1 for c in members if set(c) & set(sink_cell)), "T6 sink cell"
    for bound in (first, second, third):
        assert bound.fp_upper >= truth.false_positives, "T6 FP"
        assert bound.fn_upper >= truth.false_negatives, "T6 FN"
        assert bound.f_score.lower <= truth.f_score, "T6 F"
    assert first.f_score.lower <= second.f_score.lower, "T6 refining weakened"
    assert second.f_score.lower <= third.f_score.lower, "T6 refining weakened"
    assert third.f_score.lower == truth.f_score, "T6 one cell a token"
    assert len(finest.cells) == size

    # The scan's cells: the same in floats, rounded outward, and never stronger.
    k = int(rng.integers(3, size + 3))
    (rounded,) = regime.rounded_cell_counts(head, selection, (k,))
    exact = regime.fit_cells(head, selection, resolution=k)
    assert len(exact.cells) <= k
    best = counts(exact.enclosure(head, selection))
    assert rounded.fp_upper >= best.fp_upper >= truth.false_positives, "T6 rounded"
    assert rounded.fn_upper >= best.fn_upper >= truth.false_negatives, "T6 rounded"


def check_pairwise_head(package: ModuleType, case: CaseHead, seed: int) -> int:
    """Check T4 in every scope on all policies and several N; return the cases."""
    rng = np.random.default_rng(seed)
    head = package.head.HeadData(
        case.weights, case.values, visible=case.visible, sink=case.sink
    )
    count = 0
    for policy in POLICIES:
        order = package.selection.rank(head, -1, "weight", policy)
        largest = order.n_candidates - 1
        for n in sorted({1, largest, int(rng.integers(1, max(largest, 1) + 1))}):
            if 1 <= n <= largest:
                check_pairwise(package, head, order.select(n))
                count += 1
    return count


def check_pairwise(package: ModuleType, head: Any, selection: Any) -> None:
    """T4: token by token, the bounds contain the exact power; finer is never weaker."""
    pairwise, n = package.pairwise, selection.n
    exact = package.exact.ExactGeometry(head, selection)
    scale = 2 * (exact.w_exponent + exact.v_exponent)
    powers = [Fraction(2) ** scale * phi for phi in exact.powers().tolist()]
    counts = package.separability.interval_counts
    true = counts(package.power.Enclosure(exact.powers(), exact.powers(), n))
    vectors = package.cosines.UnitVectors(head, selection.keys)
    before = None
    for scope in pairwise.SCOPES:
        regime = pairwise.fit_pairwise(head, selection, scope, vectors)
        pairwise.check_pairwise(regime, head, selection)
        enclosure = regime.enclosure(head, selection)
        for i, phi in enumerate(powers):
            assert enclosure.lo[i] <= phi <= enclosure.hi[i], f"T4 {scope}: token {i}"
        found = counts(enclosure)
        rounded = pairwise.rounded_pairwise_counts(
            head, selection, scope, vectors, regime
        )
        for name in ("fp_upper", "fn_upper"):
            assert getattr(rounded, name) >= getattr(found, name), f"T4 {scope} rounded"
            assert getattr(found, name) >= getattr(true, name), f"T4 {scope}"
            if before is not None:
                assert getattr(found, name) <= getattr(before, name), (
                    f"T4 {scope} worse"
                )
        before = found


def cell_members(
    package: ModuleType, fitted: Any, head: Any, selection: Any
) -> list[list[int]]:
    """Keys of each cell."""
    order = package.cells.arrange(selection, head.sink).order
    keys = selection.keys[order].tolist()
    return [keys[cell.start : cell.stop] for cell in fitted.cells]
