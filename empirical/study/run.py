"""Run a study: names -> scans -> tables and findings -> figures -> pages.

Every scan goes on where it was interrupted; tables, figures and pages are made anew
from the stores.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import xarray as xr

from empirical.corpora import Corpus, count_windows, load_corpus
from empirical.errors import StudyError
from empirical.jobs import check_device, cost
from empirical.models import ModelSource, bos_rule, load, load_config, resolve
from empirical.progress import say, study_progress
from empirical.scan import ScanSpec, scan
from empirical.store import read_scan
from empirical.study.data import StudyData
from empirical.study.findings import findings
from empirical.study.job import StudyJob, manifest
from empirical.study.page import Outcome, verdict_counts, write_across, write_pair
from empirical.study.style import About
from empirical.study.tables import tables
from geobounds.files import write_text

__all__ = ["run_study"]

# A scan without BOS has one random ranking and one size of cells: about this share of
# the time of the whole scan. It only weighs the time left.
_BARE_SHARE = 0.5


@dataclass(frozen=True)
class _Pair:
    """One model on one text, planned."""

    folder: str
    source: ModelSource
    corpus: Corpus
    windows: int
    bos: str
    scans: dict[str, ScanSpec]
    heads: int
    notes: list[str] = field(default_factory=list)

    def work(self, name: str, limit: int | None) -> float:
        """Return what a scan costs, in heads times windows of the main scan."""
        share = 1.0 if name == "main" else _BARE_SHARE
        return share * self.heads * min(self.windows, limit or self.windows)

    def record(self) -> dict[str, Any]:
        """Return what identifies it, for the manifest."""
        return {
            "folder": self.folder,
            "model": self.source.name,
            "model_fingerprint": self.source.fingerprint,
            "corpus": self.corpus.describe(),
            "corpus_sha256": self.corpus.sha256,
            "windows": self.windows,
            "bos": self.bos,
            "scans": {name: asdict(spec) for name, spec in self.scans.items()},
        }


class _EnoughError(Exception):
    """The windows of a quick look are done."""


class _Tally:
    """Work done over all scans, and how much of it earlier runs did."""

    def __init__(self, report: Callable[[str, float, float], None]) -> None:
        self.report = report
        self.done = 0.0
        self.earlier = 0.0

    def follow(self, title: str, work: float, last: int) -> Callable[[int, int], None]:
        """Return the progress function of the next scan, stopped after ``last``."""
        before = self.done
        self.done += work
        reported = False

        def progress(done: int, total: int) -> None:
            nonlocal reported
            shown = min(done, last)
            part = work * shown / last
            if not reported:  # the first report tells what the store held
                self.earlier += part
                reported = True
            line = f"{title}: window {shown} of {last}"
            self.report(line, before + part, self.earlier)
            if last < total and done >= last:
                raise _EnoughError

        return progress


def run_study(
    job: StudyJob, folder: Path, repeated: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Run a study into a folder; return where its page is and the verdicts.

    Parameters
    ----------
    job : StudyJob
        What to study.
    folder : Path
        Where to; made if need be. A study that was interrupted there goes on.
    repeated : dict, optional
        The manifest that is repeated: models and texts must be the same.

    Returns
    -------
    dict
        ``page``, ``studies`` (folder, page and counts of verdicts), ``seconds``,
        ``peak_gib``.

    Raises
    ------
    StudyError
        A model or text is not that of the manifest.
    ScanError, CorpusError, ModelNotFoundError, UnsupportedModelError, CaptureError
        As for a scan.
    OSError
        The folder cannot be written.
    """
    started = time.monotonic()
    pairs = _plan(job)
    if repeated is not None:
        _check_same(pairs, repeated)
    folder.mkdir(parents=True, exist_ok=True)
    record = manifest(job, [pair.record() for pair in pairs])
    if repeated is not None and record["versions"] != repeated.get("versions"):
        say("warning: versions differ from those of the manifest; numbers may too")
    text = json.dumps(record, indent=1, ensure_ascii=False)
    write_text(folder / "manifest.json", f"{text}\n")
    total = sum(pair.work(name, job.limit) for pair in pairs for name in pair.scans)
    outcomes: list[Outcome] = []
    with study_progress(total) as report:
        tally = _Tally(report)
        for source in dict.fromkeys(pair.source for pair in pairs):
            own = [pair for pair in pairs if pair.source == source]
            scans = _scan_model(job, own, folder, tally)
            outcomes += _evaluate(own, scans, folder)
    say("writing the page across models and texts")
    quick = list(dict.fromkeys(o.about.quick for o in outcomes if o.about.quick))
    page = write_across(outcomes, folder, quick)
    return {
        "page": str(page),
        "studies": [
            {
                "folder": o.folder,
                "page": str(folder / o.folder / "index.html"),
                "verdicts": verdict_counts(o.tables["findings"]),
            }
            for o in outcomes
        ],
        **cost(started),
    }


def _plan(job: StudyJob) -> list[_Pair]:
    """Resolve every name and measure every text, before the first long run."""
    check_device(job.device)
    sources = [resolve(name, revision=job.revision, log=say) for name in job.models]
    corpora = [load_corpus(name, field=job.field) for name in job.corpora]
    pairs: list[_Pair] = []
    for source in sources:
        config, tokenizer = load_config(source, trust_remote_code=job.trust_remote_code)
        rule = bos_rule(SimpleNamespace(config=config), tokenizer, job.bos)
        shape = config.get_text_config()
        for corpus, asked in zip(corpora, job.windows_by_text, strict=True):
            windows = count_windows(
                corpus,
                tokenizer,
                at_most=asked,
                length=job.length,
                bos=rule.token,
            )
            notes = []
            if windows < asked:
                kind = "blocks" if corpus.blocks else "documents"
                note = (
                    f"{corpus.name} holds {windows} {kind} of {job.length} tokens or "
                    f"more; {asked} windows were asked for."
                )
                notes.append(note)
            scans = {"main": job.main(windows)}
            if rule.token is None:
                note = (
                    f"No BOS opens the windows ({rule.text}), so there is no second "
                    "scan without it: F8 compares the scan with itself."
                )
                notes.append(note)
            else:
                scans["bare"] = job.bare(windows)
            pair = _Pair(
                _folder_name(source.name, corpus.name, {p.folder for p in pairs}),
                source,
                corpus,
                windows,
                rule.text,
                scans,
                shape.num_hidden_layers * shape.num_attention_heads,
                notes,
            )
            for note in notes:
                say(f"{pair.folder}: {note}")
            pairs.append(pair)
    return pairs


def _folder_name(model: str, corpus: str, taken: set[str]) -> str:
    """Return a name fit for a folder, told apart from those taken."""
    words = (Path(model).name or model, Path(corpus).name)
    name = "-".join("".join(c if c.isalnum() else "-" for c in w) for w in words)
    number, found = 2, name
    while found in taken:
        number, found = number + 1, f"{name}-{number}"
    return found


def _check_same(pairs: list[_Pair], repeated: dict[str, Any]) -> None:
    """Refuse another model or text than the manifest was made with."""
    expected = {study["folder"]: study for study in repeated["studies"]}
    for pair in pairs:
        record, known = pair.record(), expected.get(pair.folder, {})
        for key in ("model_fingerprint", "corpus_sha256", "windows"):
            if record[key] != known.get(key):
                msg = (
                    f"study: {key} of {pair.folder} must be {known.get(key)} as in the "
                    f"manifest, got {record[key]}. The model or the text has changed."
                )
                raise StudyError(msg)


def _scan_model(
    job: StudyJob, pairs: list[_Pair], folder: Path, tally: _Tally
) -> list[dict[str, xr.Dataset]]:
    """Run all scans of one model, loaded once."""
    source = pairs[0].source
    say(f"loading {source.name}")
    model, tokenizer = load(
        source,
        device=job.device,
        dtype=job.dtype,
        trust_remote_code=job.trust_remote_code,
    )
    found = []
    for pair in pairs:
        (folder / pair.folder).mkdir(exist_ok=True)
        scans = {}
        for name, spec in pair.scans.items():
            last = min(spec.windows, job.limit or spec.windows)
            title, work = f"{pair.folder}, {name}", pair.work(name, job.limit)
            progress = tally.follow(title, work, last)
            store = folder / pair.folder / f"{name}.zarr"
            inputs = (model, tokenizer, source, pair.corpus)
            # What is left of the store is scanned when the limit is lifted.
            with suppress(_EnoughError):
                scan(*inputs, store, spec, progress=progress)
            scans[name] = _first(read_scan(store, whole=False), last)
        found.append(scans)
    return found


def _first(data: xr.Dataset, count: int) -> xr.Dataset:
    """Return the first windows of a scan, which are all done."""
    if not bool(data["done"][:count].all()):
        msg = f"study: the first {count} windows must be scanned, got fewer. Run again."
        raise StudyError(msg)
    part = data.isel(window=slice(count))
    part.attrs = {**data.attrs, "documents": list(data.attrs["documents"][:count])}
    return part


def _evaluate(
    pairs: list[_Pair], scans: list[dict[str, xr.Dataset]], folder: Path
) -> list[Outcome]:
    """Make tables, findings and pages of one model on all its texts."""
    studies = [
        StudyData(found["main"], found.get("bare", found["main"]), pair.folder)
        for pair, found in zip(pairs, scans, strict=True)
    ]
    outcomes = []
    for pair, study in zip(pairs, studies, strict=True):
        say(f"{pair.folder}: tables, findings and figures")
        partners = [other for other in studies if other is not study]
        notes = [*pair.notes, *([study.warning] if study.warning else [])]
        warning = study.attrs.get("bos_warning")
        if warning:
            notes.append(f"{warning}.")
        outcome = Outcome.of(
            pair.folder,
            About.of(study.main),
            tables(study, partners[0] if partners else None),
            findings(study, partners),
            notes,
        )
        write_pair(outcome, folder / pair.folder)
        outcomes.append(outcome)
    return outcomes
