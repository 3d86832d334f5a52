"""``python -m proofs_checks [ids]``: repeat the proofs; exit 1 unless all hold."""

import argparse
import sys

from geobounds.errors import ArgumentError
from proofs_checks.runner import print_reports, run_proofs


def main() -> int:
    """Run the proofs named on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m proofs_checks",
        description="Repeat the machine proofs of the statements; exit 1 unless every "
        "step holds.",
    )
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help="such as T3 (default: all)"
    )
    parser.add_argument("--steps", action="store_true", help="list every step")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    try:
        reports = run_proofs(options.ids)
        return print_reports(reports, steps=options.steps, as_json=options.json)
    except ArgumentError as error:
        print(f"proofs_checks: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
