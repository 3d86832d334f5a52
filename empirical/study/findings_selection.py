"""F1 to F3: attention against random sets, the sink's geometry, what the sink costs."""

import numpy as np

from empirical.metrics import CLASSES
from empirical.reduce import DISTANCES, RANKINGS
from empirical.study.data import NO_CLASS, StudyData
from empirical.study.finding import Finding, Range
from empirical.study.hypotheses import ABOVE_ZERO, BELOW_ZERO, sampled
from empirical.study.measures import (
    class_means,
    head_means,
    mean_over_heads,
    mean_over_n,
    median_over_heads,
    random_f,
    selected_entries,
    usable_n,
)
from empirical.study.resample import pooled_mean, ratio, weighted_median

__all__ = ["separability", "sink_cost", "sink_geometry"]


def separability(study: StudyData) -> list[Finding]:
    """F1: what attention selects is more separable than random sets."""
    found = []
    for distance in DISTANCES:
        random = random_f(study, distance).mean(axis=0)
        for ranking in RANKINGS:
            gain = pooled_mean(
                study.weights, study.f("keep", ranking, distance) - random
            )
            if (distance, ranking) == (DISTANCES[0], RANKINGS[0]):
                by_weight = gain
            found.append(
                sampled(
                    study,
                    f"F1-{distance}-{ranking}",
                    f"More separable than random sets: {ranking}, {distance}",
                    hypothesis=f"The N tokens of greatest {ranking} are more separable "
                    f"in {distance} distance than N tokens chosen at random.",
                    measure="F of the selection minus mean F of the random rankings, "
                    "mean over heads and over N >= 2, sink kept (difference in F)",
                    statistic=mean_over_n(gain, usable_n(study)),
                    expected=ABOVE_ZERO,
                    figure="separability",
                )
            )
    small = mean_over_n(by_weight, usable_n(study, 2, 32))
    large = mean_over_n(by_weight, usable_n(study, 64))
    found.append(
        sampled(
            study,
            "F1-small",
            "Most clearly at small and middle N",
            hypothesis="The gain over random sets is larger for N from 2 to 32 than "
            "for N of 64 and more.",
            measure="Mean gain in F over random rankings at 2 <= N <= 32 minus that at "
            "N >= 64; weight, Euclidean distance, sink kept (difference in F)",
            statistic=small - large,
            expected=ABOVE_ZERO,
            figure="separability",
            note=f"Gain {small[0]:.3f} at small and {large[0]:.3f} at large N.",
        )
    )
    return found


def sink_geometry(study: StudyData) -> list[Finding]:
    """F2: the sink's value is short and points against the others."""
    norms = weighted_median(study.weights, study.numbers("sink_norm_ratio"))
    cosines = head_means(study, study.numbers("sink_cosine"))
    negative = np.where(np.isnan(cosines), np.nan, cosines < 0)
    inside = norms[0][~np.isnan(norms[0])]
    share = float(np.mean((inside >= 3) & (inside <= 10))) if inside.size else np.nan
    return [
        sampled(
            study,
            "F2-norm",
            "The sink is 3 to 10 times shorter",
            hypothesis="The value of the sink is 3 to 10 times shorter than the median "
            "value of the other tokens.",
            measure="Median norm of the other values over the norm of the sink's: "
            "median over heads of each head's median over documents (ratio)",
            statistic=median_over_heads(norms),
            expected=Range(3.0, 10.0),
            figure="sink_geometry",
            note=f"In {100 * share:.0f} % of heads the ratio lies from 3 to 10.",
        ),
        sampled(
            study,
            "F2-cosine",
            "The sink points against the others",
            hypothesis="On average the value of the sink points away from the others.",
            measure="Mean cosine of the sink's value with the others, mean over heads "
            "(cosine)",
            statistic=mean_over_heads(cosines),
            expected=BELOW_ZERO,
            figure="sink_geometry",
        ),
        sampled(
            study,
            "F2-cosine-share",
            "It does so in most heads",
            hypothesis="In more than half of the heads the mean cosine of the sink's "
            "value with the others is negative.",
            measure="Share of heads whose mean cosine with the sink is below 0 (share)",
            statistic=mean_over_heads(negative),
            expected=Range(least=0.5, strict=True),
            figure="sink_geometry",
        ),
    ]


def sink_cost(study: StudyData) -> list[Finding]:
    """F3: selecting the sink lowers F."""
    gain = study.f("drop") - study.f("keep")
    usable = usable_n(study)
    keep, drop = (
        pooled_mean(study.weights, x[:, :, usable].reshape(study.n_documents, -1, 1))
        for x in selected_entries(study)
    )
    codes = study.head_classes
    mixer = CLASSES.index("Mixer")
    masks = np.stack([codes == mixer, (codes != mixer) & (codes != NO_CLASS)])
    by_class = class_means(study.weights, masks, gain)
    mixers, others = (mean_over_n(by_class[:, k], usable) for k in (0, 1))
    return [
        sampled(
            study,
            "F3-sink",
            "Without the sink F is higher",
            hypothesis="Selections are more separable when the sink is left out.",
            measure="F with the sink dropped minus F with it kept, mean over heads and "
            "over N >= 2; weight, Euclidean distance (difference in F)",
            statistic=mean_over_n(pooled_mean(study.weights, gain), usable),
            expected=ABOVE_ZERO,
            figure="policies",
        ),
        sampled(
            study,
            "F3-half",
            "Selecting the sink halves F",
            hypothesis="Where the sink is among the N selected, F is at most half of "
            "what it is without the sink.",
            measure="Mean F with the sink kept over mean F with it dropped, over all "
            "heads and N >= 2 that select the sink (ratio)",
            statistic=ratio(keep, drop)[:, 0],
            expected=Range(greatest=0.5),
            figure="sink_selected",
            note=f"Mean F {keep[0, 0]:.3f} kept, {drop[0, 0]:.3f} dropped.",
        ),
        sampled(
            study,
            "F3-class",
            "Mixers lose most to the sink",
            hypothesis="The sink costs Mixers more F than the other heads.",
            measure="F with the sink dropped minus F with it kept, mean over N >= 2: "
            "Mixers minus all other heads (difference in F)",
            statistic=mixers - others,
            expected=ABOVE_ZERO,
            figure="policies_by_class",
            note=f"Mixers lose {mixers[0]:.3f}, the others {others[0]:.3f}.",
        ),
    ]
