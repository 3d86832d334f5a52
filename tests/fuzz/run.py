"""Search for inputs that crash a reader: ``python run.py NAME [libFuzzer options]``.

NAME is heads, certificates or command. New inputs that reach new code are kept in
``work/NAME``; one that fails is written to ``corpus/NAME``, where the ordinary tests
find it. Needs atheris.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
LIMITS = ("-max_len=16384", "-timeout=30", "-rss_limit_mb=2048", "-len_control=0")


def main(name: str, options: list[str]) -> None:
    """Run one harness until a limit of libFuzzer's is reached."""
    import atheris

    sys.path[:0] = [str(HERE), str(HERE.parents[1])]
    with atheris.instrument_imports(include=["geobounds"]):
        from harness import HARNESSES
    from mutators import MUTATORS

    change = MUTATORS[name]

    def mutator(data: bytes, size: int, seed: int) -> bytes:
        return change(data, atheris.Mutate, size, seed)

    work, corpus = HERE / "work" / name, HERE / "corpus" / name
    work.mkdir(parents=True, exist_ok=True)
    corpus.mkdir(parents=True, exist_ok=True)
    found = f"-artifact_prefix={corpus}/"
    arguments = [__file__, *LIMITS, found, *options, str(work), str(corpus)]
    atheris.Setup(arguments, HARNESSES[name], custom_mutator=mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
