"""The ``geobounds`` command.

Exempt from the import rule: commands that need a model import ``empirical`` when they
run, so that certify and verify work without torch.

Exit codes: 0 done, 1 a check failed, 2 could not run, 130 interrupted.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from geobounds.certificate import Certificate, certify
from geobounds.claims import REGIMES
from geobounds.errors import ArgumentError, GeoboundsError
from geobounds.head import HeadData
from geobounds.selection import SINK_POLICIES
from geobounds.verify import verify

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except GeoboundsError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted; a scan goes on where it stopped when run again.")
        return 130
    except BrokenPipeError:  # the reader of our output left; nothing to say
        sys.stderr.close()
        return 0
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return _fail(f"{options.command}: {error.strerror or error}{where}.")
    except ModuleNotFoundError as error:
        return _fail(
            f"{options.command}: {error.name} must be installed. "
            "Run: pip install 'geobounds[models,report]'"
        )
    return code


def _fail(message: str) -> int:
    print(f"geobounds: {message}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="geobounds",
        description="Measure and certify how separable the tokens are that attention "
        "selects.",
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    report = commands.add_parser(
        "report",
        help="scan a model and write one page of results",
        description="Scan a model and write REPORT/index.html with its figures. "
        "Interrupted or killed, it goes on where it stopped.",
    )
    _model_options(report)
    report.add_argument(
        "-o", "--out", default="report", help="folder of the page (default: report)"
    )
    report.set_defaults(run=_report)

    scan = commands.add_parser(
        "scan",
        help="measure all heads of a model",
        description="Measure all heads of a model at the last query of each window; "
        "results go to a Zarr store. Interrupted or killed, it goes on where it "
        "stopped.",
    )
    _model_options(scan)
    scan.add_argument(
        "-o", "--out", default="scan.zarr", help="store (default: scan.zarr)"
    )
    scan.set_defaults(run=_scan)

    cert = commands.add_parser(
        "certify",
        help="certify one head from a file",
        description="Certify lower bounds on precision, recall and F of one query of "
        "a head saved with HeadData.save, and print them as a table.",
    )
    cert.add_argument("head", metavar="HEAD.npz", help="head (.npz or .safetensors)")
    cert.add_argument(
        "--n",
        type=_numbers,
        metavar="N[,N...]",
        help="numbers of selected tokens (default: powers of two from 2)",
    )
    cert.add_argument(
        "--query", type=int, default=-1, help="row of the query (default: the last)"
    )
    cert.add_argument(
        "--regime",
        choices=REGIMES,
        default="cells",
        help="what the bounds follow from (default: cells)",
    )
    cert.add_argument(
        "--resolution",
        type=int,
        default=9,
        metavar="K",
        help="largest number of cells (default: 9)",
    )
    cert.add_argument(
        "--ranking",
        choices=("weight", "contribution"),
        default="weight",
        help="what tokens are selected by (default: weight)",
    )
    cert.add_argument(
        "--sink-policy",
        choices=SINK_POLICIES,
        default="keep",
        help="the sink is an ordinary candidate, none, or never selected "
        "(default: keep)",
    )
    cert.add_argument("-o", "--out", metavar="CERT.json", help="save the certificate")
    cert.add_argument("--json", action="store_true", help="print JSON, not a table")
    cert.set_defaults(run=_certify)

    check = commands.add_parser(
        "verify",
        help="check a certificate against its head",
        description="Check a certificate in exact arithmetic, independently of the "
        "code that made it. Exit code 0 only if everything holds.",
    )
    check.add_argument("certificate", metavar="CERT.json")
    check.add_argument("head", metavar="HEAD.npz", help="head (.npz or .safetensors)")
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(run=_verify)

    models = commands.add_parser(
        "models",
        help="list packaged models and texts",
        description="List the models and texts that install as packages, and whether "
        "they are installed here.",
    )
    models.add_argument("--json", action="store_true", help="print JSON")
    models.set_defaults(run=_models)
    return parser


def _model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        default="smollm2",
        help="packaged name, folder, .gguf file or Hugging Face name "
        "(default: smollm2)",
    )
    parser.add_argument(
        "--corpus",
        default="python-docs",
        help="packaged name or UTF-8 text file (default: python-docs)",
    )
    parser.add_argument(
        "--windows", type=int, default=4, help="number of windows (default: 4)"
    )
    parser.add_argument(
        "--length", type=int, default=512, help="tokens of a window (default: 512)"
    )
    parser.add_argument(
        "--n",
        type=_numbers,
        metavar="N[,N...]",
        help="numbers of selected tokens (default: 1,2,4,...,256)",
    )
    parser.add_argument("--device", default="cpu", help="torch device (default: cpu)")
    parser.add_argument(
        "--dtype",
        choices=("float32", "bfloat16", "float16"),
        default="float32",
        help="type of weights and activations (default: float32)",
    )
    parser.add_argument("--revision", help="revision of a Hugging Face name")
    parser.add_argument(
        "--seed", type=int, default=0, help="order of documents, random rankings"
    )
    parser.add_argument("--json", action="store_true", help="print JSON when done")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        msg = f"must be whole numbers separated by commas, got {text!r}"
        raise argparse.ArgumentTypeError(msg) from None
    return numbers


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


def _certify(options: argparse.Namespace) -> int:
    certificate = certify(
        HeadData.load(options.head),
        options.n,
        query=options.query,
        regime=options.regime,
        resolution=options.resolution,
        ranking=options.ranking,
        sink_policy=options.sink_policy,
    )
    if options.out:
        certificate.save(options.out)
    if options.json:
        print(json.dumps(certificate.to_dict(), indent=1))
    else:
        print(certificate)
    return 0


def _verify(options: argparse.Namespace) -> int:
    for path in (options.certificate, options.head):
        if not Path(path).is_file():
            msg = f"verify: {path} must be a file, got none there."
            raise ArgumentError(msg)
    outcome = verify(options.certificate, options.head)
    if options.json:
        print(json.dumps({"ok": outcome.ok, "reasons": outcome.reasons}, indent=1))
    elif outcome:
        claims = Certificate.load(options.certificate)
        print(f"holds: {len(claims)} claims, N = {', '.join(map(str, claims))}")
    else:
        print("does not hold:")
        print("\n".join(f"  {reason}" for reason in outcome.reasons))
    return 0 if outcome else 1


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


if __name__ == "__main__":
    sys.exit(main())
