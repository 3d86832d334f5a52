"""The arguments of the ``geobounds`` command."""

import argparse

from geobounds.claims import REGIMES
from geobounds.selection import SINK_POLICIES

__all__ = ["parser"]


def parser(version: str) -> argparse.ArgumentParser:
    """Return the parser; ``command`` names the command to run."""
    main = argparse.ArgumentParser(
        prog="geobounds",
        description="Measure and certify how separable the tokens are that attention "
        "selects.",
    )
    main.add_argument("--version", action="version", version=version)
    commands = main.add_subparsers(dest="command", required=True, metavar="COMMAND")

    report = commands.add_parser(
        "report",
        help="scan a model and write one page of results",
        description="Scan a model and write REPORT/index.html with its figures. "
        "Interrupted or killed, it goes on where it stopped.",
    )
    _model_options(report)
    _query_options(report)
    report.add_argument(
        "-o", "--out", default="report", help="folder of the page (default: report)"
    )

    scan = commands.add_parser(
        "scan",
        help="measure all heads of a model",
        description="Measure all heads of a model at the last query of each window; "
        "results go to a Zarr store. Interrupted or killed, it goes on where it "
        "stopped.",
    )
    _model_options(scan)
    _query_options(scan)
    scan.add_argument(
        "-o", "--out", default="scan.zarr", help="store (default: scan.zarr)"
    )

    study = commands.add_parser(
        "study",
        help="test the findings on models and texts, with figures and pages",
        description="Scan models on texts, test every finding as a stated hypothesis, "
        "and write STUDY/index.html, a page for each model and text, and all figures "
        "as PNG, PDF and CSV. Interrupted or killed, it goes on where it stopped. A "
        "text that holds fewer windows is studied with those it has.",
    )
    _model_options(study, several_texts=True)
    study.add_argument(
        "--limit",
        type=int,
        metavar="K",
        help="quick look: only the first K windows; the rest can be scanned later",
    )
    study.add_argument(
        "--from",
        dest="manifest",
        metavar="MANIFEST.json",
        help="repeat the study of this manifest; takes only -o and --json with it",
    )
    study.add_argument(
        "-o", "--out", default="study", help="folder of the pages (default: study)"
    )
    # None tells what was given from what was not: --from refuses other options.
    names = ("field", "length", "device", "dtype", "bos", "seed")
    study.set_defaults(**dict.fromkeys((*names, "corpus", "trust_remote_code")))

    capture = commands.add_parser(
        "capture",
        help="save one head of a model at a prompt",
        description="Run a model on a text and save one of its heads, for inspect and "
        "certify. The text of its tokens is saved with it.",
    )
    capture.add_argument(
        "model",
        metavar="MODEL",
        help="packaged name, folder, .gguf file or Hugging Face name",
    )
    capture.add_argument("--prompt", metavar="TEXT", help="the text itself")
    capture.add_argument("--text-file", metavar="FILE", help="a UTF-8 file of the text")
    capture.add_argument("--layer", type=int, required=True, help="counted from 0")
    capture.add_argument("--head", type=int, required=True, help="counted from 0")
    capture.add_argument(
        "-o", "--out", default="head.npz", help="head file (default: head.npz)"
    )
    capture.add_argument(
        "--queries",
        choices=("last", "all"),
        default="last",
        help="save the last query or all (default: last)",
    )
    _loading_options(capture)

    look = commands.add_parser(
        "inspect",
        help="list the selected tokens of a head and its false positives",
        description="List the tokens that one query of a saved head selects, those "
        "that lie too far from their sum, and the others that lie too near.",
    )
    look.add_argument("head", metavar="HEAD.npz", help="head (.npz or .safetensors)")
    look.add_argument(
        "--n",
        type=int,
        metavar="N",
        help="number of selected tokens (default: 8, or what the head allows)",
    )
    _selection_options(look)
    look.add_argument("--json", action="store_true", help="print JSON, not a table")
    look.add_argument("--plot", metavar="PNG", help="draw distance against weight")

    cert = commands.add_parser(
        "certify",
        help="certify heads from files",
        description="Certify lower bounds on precision, recall and F of one query of "
        "a head saved with HeadData.save, and print them as a table.",
    )
    cert.add_argument(
        "heads",
        metavar="HEAD.npz",
        nargs="+",
        help="head (.npz or .safetensors); several give one file with all certificates",
    )
    cert.add_argument(
        "--n",
        type=_numbers,
        metavar="N[,N...]",
        help="numbers of selected tokens (default: powers of two from 2)",
    )
    _selection_options(cert)
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
    cert.add_argument("-o", "--out", metavar="CERT.json", help="save the certificate")
    cert.add_argument("--json", action="store_true", help="print JSON, not a table")

    check = commands.add_parser(
        "verify",
        help="check a certificate against its head",
        description="Check a certificate in exact arithmetic, independently of the "
        "code that made it. Exit code 0 only if everything holds.",
    )
    check.add_argument("certificate", metavar="CERT.json")
    check.add_argument(
        "heads",
        metavar="HEAD.npz",
        nargs="+",
        help="head (.npz or .safetensors); several for a file of several certificates",
    )
    check.add_argument("--json", action="store_true", help="print JSON")

    theorems = commands.add_parser(
        "theorems",
        help="list the statements and repeat their machine proofs",
        description="Repeat the machine proofs of all statements, or of those named, "
        "and print what each covers. Exit code 0 only if every step holds. Needs the "
        "extra geobounds[proofs], --list does not.",
    )
    theorems.add_argument(
        "ids", nargs="*", metavar="ID", help="such as T3 or T2b (default: all)"
    )
    theorems.add_argument(
        "--list", action="store_true", help="print the statements, prove nothing"
    )
    theorems.add_argument("--steps", action="store_true", help="list every step")
    theorems.add_argument("--json", action="store_true", help="print JSON, not a table")

    models = commands.add_parser(
        "models",
        help="list packaged models and texts",
        description="List the models and texts that install as packages, and whether "
        "they are installed here.",
    )
    models.add_argument("--json", action="store_true", help="print JSON")
    return main


def _model_options(
    parser: argparse.ArgumentParser, *, several_texts: bool = False
) -> None:
    parser.add_argument(
        "--model",
        action="append",
        help="packaged name, folder, .gguf file or Hugging Face name (default: "
        "smollm2); report and study take it several times",
    )
    times = "; takes it several times" if several_texts else ""
    parser.add_argument(
        "--corpus",
        action="append" if several_texts else "store",
        default=None if several_texts else "python-docs",
        help="packaged name, UTF-8 text file, .jsonl file or hf:NAME data set "
        f"(default: python-docs){times}",
    )
    parser.add_argument(
        "--field", default="text", help="field of .jsonl lines and data set rows"
    )
    if several_texts:
        parser.add_argument(
            "--windows",
            type=_numbers,
            metavar="K[,K...]",
            help="number of windows: one for all texts, or one each (default: 16)",
        )
    else:
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
    _loading_options(parser)
    parser.add_argument(
        "--seed", type=int, default=0, help="order of documents, random rankings"
    )
    parser.add_argument("--json", action="store_true", help="print JSON when done")


def _query_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--queries",
        type=_queries,
        default="last",
        metavar="last|all|every=K",
        help="queries of each window; with others than the last, counts and the bounds "
        "T2 and T6 only (default: last)",
    )
    parser.add_argument(
        "--no-controls",
        action="store_true",
        help="of the last query too, counts and the bounds T2 and T6 only",
    )
    parser.add_argument(
        "--no-cells",
        action="store_true",
        help="with --no-controls or other queries: without the bound T6",
    )


def _loading_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="cpu", help="torch device (default: cpu)")
    parser.add_argument(
        "--dtype",
        choices=("float32", "bfloat16", "float16"),
        default="float32",
        help="type of weights and activations (default: float32)",
    )
    parser.add_argument(
        "--bos",
        choices=("auto", "none"),
        default="auto",
        help="open each window with the model's BOS token, or not (default: auto)",
    )
    parser.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="run code that comes with a Hugging Face model",
    )
    parser.add_argument("--revision", help="revision of a Hugging Face name")


def _selection_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--query", type=int, default=-1, help="row of the query (default: the last)"
    )
    parser.add_argument(
        "--ranking",
        choices=("weight", "contribution"),
        default="weight",
        help="what tokens are selected by (default: weight)",
    )
    parser.add_argument(
        "--sink-policy",
        choices=SINK_POLICIES,
        default="keep",
        help="the sink is an ordinary candidate, none, or never selected "
        "(default: keep)",
    )


def _queries(text: str) -> str | int:
    word, _, step = text.partition("=")
    if text in ("last", "all"):
        return text
    if word == "every" and step.isascii() and step.isdecimal() and int(step) >= 1:
        return int(step)
    msg = f"must be last, all or every=K, got {text!r:.60}"
    raise argparse.ArgumentTypeError(msg)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        msg = f"must be whole numbers separated by commas, got {text!r:.60}"
        raise argparse.ArgumentTypeError(msg) from None
    return numbers
