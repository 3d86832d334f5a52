"""The ``geobounds`` command.

Exempt from the import rule: commands that need a model import ``empirical`` when they
run, so that inspect, certify and verify work without torch.

Exit codes: 0 done, 1 a check failed, 2 could not run, 130 interrupted.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from geobounds.certificate import CertificateSet, certify
from geobounds.cli_parser import parser
from geobounds.errors import ArgumentError, GeoboundsError
from geobounds.head import HeadData
from geobounds.inspection import inspect
from geobounds.verify import verify

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    try:
        options = parser(_version()).parse_args(arguments)
    except SystemExit:  # help and version are printed
        with suppress(OSError):
            _flush()
        raise
    try:
        code = _COMMANDS[options.command](options)
        _flush()
        return code
    except GeoboundsError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted; a scan goes on where it stopped when run again.")
        return 130
    except BrokenPipeError:  # the reader of our output left; nothing to say
        sys.stdout = None  # or Python would try at exit
        sys.stderr.close()
        return 0
    except MemoryError:
        return _fail(f"{options.command}: memory must suffice, got less than needed.")
    except OSError as error:
        with suppress(OSError):
            _flush()
        where = f": {error.filename}" if error.filename else ""
        return _fail(f"{options.command}: {error.strerror or error}{where}.")
    except ModuleNotFoundError as error:
        extra = "proofs" if options.command == "theorems" else "models,report"
        return _fail(
            f"{options.command}: {error.name} must be installed. "
            f"Run: pip install 'geobounds[{extra}]'"
        )


def _fail(message: str) -> int:
    print(f"geobounds: {message}", file=sys.stderr)
    return 2


def _flush() -> None:
    """Write out what was printed: a full disk shows here, not as Python exits."""
    try:
        if sys.stdout is not None:  # it may be closed
            sys.stdout.flush()
    except OSError:
        sys.stdout = None  # or Python would try at exit
        raise


def _print(text: str) -> None:
    """Print text that may hold any letters; one that stdout lacks gets its escape."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def _version() -> str:
    try:
        return f"geobounds {version('geobounds')}"
    except PackageNotFoundError:
        return "geobounds (not installed)"


def _report(options: argparse.Namespace) -> int:
    from empirical.jobs import Job, run_report

    outcome = run_report(Job.from_options(options), Path(options.out))
    return _outcome(options, outcome, f"page: {outcome['page']}")


def _scan(options: argparse.Namespace) -> int:
    from empirical.jobs import Job, run_scan

    outcome = run_scan(Job.from_options(options), Path(options.out))
    return _outcome(options, outcome, f"store: {outcome['store']}")


def _study(options: argparse.Namespace) -> int:
    from empirical.study.job import StudyJob, read_manifest
    from empirical.study.run import run_study

    repeated = None
    if options.manifest is None:
        job = StudyJob.from_options(options)
    else:
        own = ("command", "manifest", "out", "json")
        given = [k for k, v in vars(options).items() if k not in own and v is not None]
        if given:
            msg = (
                "study: --from must stand alone, with -o and --json only, got "
                f"--{given[0].replace('_', '-')}. The manifest holds the rest."
            )
            raise ArgumentError(msg)
        job, repeated = read_manifest(Path(options.manifest))
    outcome = run_study(job, Path(options.out), repeated)
    lines = [f"page: {outcome['page']}"]
    for study in outcome["studies"]:
        counts = ", ".join(f"{n} {verdict}" for verdict, n in study["verdicts"].items())
        lines.append(f"{study['folder']}: {counts}")
    return _outcome(options, outcome, "\n".join(lines))


def _outcome(options: argparse.Namespace, outcome: dict[str, Any], line: str) -> int:
    if options.json:
        print(json.dumps(outcome, indent=1))
    else:
        print(line)
        print(
            f"{outcome['seconds']:.0f} seconds, "
            f"{outcome['peak_gib']:.2f} GiB of memory at the peak"
        )
    return 0


def _capture(options: argparse.Namespace) -> int:
    given = [x for x in (options.prompt, options.text_file) if x is not None]
    if len(given) != 1:
        found = "both" if given else "neither"
        msg = f"capture: give --prompt or --text-file, one of them, got {found}."
        raise ArgumentError(msg)
    if Path(options.out).suffix not in (".npz", ".safetensors"):
        msg = f"capture: --out must end in .npz or .safetensors, got {options.out!r}."
        raise ArgumentError(msg)
    from empirical.hand import capture_head, read_text

    text = options.prompt if options.text_file is None else read_text(options.text_file)
    head = capture_head(
        options.model,
        text,
        layer=options.layer,
        head=options.head,
        queries=options.queries,
        device=options.device,
        dtype=options.dtype,
        revision=options.revision,
        bos=options.bos,
        trust_remote_code=options.trust_remote_code,
        log=lambda line: print(line, file=sys.stderr),
    )
    head.save(options.out)
    _print(f"head: {options.out}, {head!r}")
    return 0


def _inspect(options: argparse.Namespace) -> int:
    found = inspect(
        HeadData.load(options.head),
        options.n,
        query=options.query,
        ranking=options.ranking,
        sink_policy=options.sink_policy,
    )
    if options.plot:
        from empirical.drawing import save_drawing
        from empirical.hand_plot import distance_by_weight

        save_drawing(distance_by_weight(found), Path(options.plot))
    text = json.dumps(found.to_dict(), indent=1) if options.json else str(found)
    _print(text)
    return 0


def _certify(options: argparse.Namespace) -> int:
    names = ("query", "regime", "resolution", "ranking", "sink_policy")
    chosen = {name: getattr(options, name) for name in names}
    several, found = len(options.heads) > 1, []
    for path in options.heads:
        head = HeadData.load(path)
        try:
            found.append(certify(head, options.n, **chosen))
        except GeoboundsError as error:
            return _fail(f"{path}: {error}" if several else str(error))
    certificate = CertificateSet(found) if several else found[0]
    if options.out:
        out = Path(options.out)
        if out.exists() and any(map(out.samefile, options.heads)):
            msg = f"certify: --out must not be a head file read, got {options.out!r}."
            raise ArgumentError(msg)
        certificate.save(options.out)
    if options.json:
        print(json.dumps(certificate.to_dict(), indent=1))
    elif several:
        pairs = zip(options.heads, found, strict=True)
        _print("\n\n".join(f"{path}\n{table}" for path, table in pairs))
    else:
        print(certificate)
    return 0


def _verify(options: argparse.Namespace) -> int:
    for path in (options.certificate, *options.heads):
        if not Path(path).is_file():
            msg = f"verify: {path} must be a file, got none there."
            raise ArgumentError(msg)
    outcome = verify(options.certificate, *options.heads)
    if options.json:
        print(json.dumps(asdict(outcome), indent=1))
    elif outcome:
        data = json.loads(Path(options.certificate).read_text(encoding="utf-8"))
        if outcome.conditional:
            print("holds for values that meet the regime; the head file has no values.")
        for part in data.get("certificates", [data]):
            numbers = [claim["n"] for claim in part["claims"]]
            print(f"holds: {len(numbers)} claims, N = {', '.join(map(str, numbers))}")
    else:
        print("does not hold:")
        _print("\n".join(f"  {reason}" for reason in outcome.reasons))
    return 0 if outcome else 1


def _theorems(options: argparse.Namespace) -> int:
    from geobounds.theorems import described, statements_for

    chosen = list(statements_for(options.ids))
    if not options.list:
        from proofs_checks.runner import print_reports, run_proofs

        reports = run_proofs(options.ids)
        return print_reports(reports, steps=options.steps, as_json=options.json)
    if options.json:
        print(json.dumps([described(s) for s in chosen], indent=1))
        return 0
    for s in chosen:
        print(f"{s.id}: {s.title}")
        print(f"    {s.kind}, {s.source}; {s.code}")
        for h in s.hypotheses:
            print(f"    if {h.text}")
    return 0


def _models(options: argparse.Namespace) -> int:
    from empirical.corpora import CORPORA
    from empirical.models import PACKAGED

    models = {
        name: {
            "title": model.title,
            "licence": model.licence,
            "installed": model.path() is not None,
            "install": model.install,
        }
        for name, model in PACKAGED.items()
    }
    if options.json:
        print(json.dumps({"models": models, "corpora": CORPORA}, indent=1))
        return 0
    print("models:")
    for name, facts in models.items():
        state = "installed" if facts["installed"] else f"run: {facts['install']}"
        print(f"  {name}  {facts['title']}, {facts['licence']} ({state})")
    print("texts:")
    for name, title in CORPORA.items():
        print(f"  {name}  {title}")
    print("Any model folder, .gguf file or Hugging Face name, and any UTF-8 text file.")
    return 0


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "report": _report,
    "scan": _scan,
    "study": _study,
    "capture": _capture,
    "inspect": _inspect,
    "certify": _certify,
    "verify": _verify,
    "theorems": _theorems,
    "models": _models,
}


if __name__ == "__main__":
    sys.exit(main())
