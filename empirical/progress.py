"""Progress on standard error: a bar with time left on a terminal, else plain lines."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["say", "study_progress", "window_progress"]


def say(line: str) -> None:
    """Print one line of progress."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def window_progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function to call with (windows done, windows)."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain_lines(title)
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("window {task.completed} of {task.total}"),
        TimeRemainingColumn(),
        console=console,
    ) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _plain_lines(title: str) -> Callable[[int, int], None]:
    first: list[tuple[int, float]] = []

    def report(done: int, total: int) -> None:
        now = time.monotonic()
        first.append((done, now))
        before, started = first[0]
        line = f"{title}: {done} of {total} windows"
        if done > before and done < total:
            left = (now - started) / (done - before) * (total - done)
            line += f", about {left:.0f} s left"
        say(line)

    return report


@contextmanager
def study_progress(total: float) -> Iterator[Callable[[str, float, float], None]]:
    """Give a function to call with (what is done, work done, of it by earlier runs).

    Parameters
    ----------
    total : float
        All the work of many scans, in the unit in which it is reported. Time left is
        judged by what this run has done.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain_shares(total)
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} % of what is left to scan"),
        TimeRemainingColumn(),
        console=console,
    ) as bar:
        task = bar.add_task("starting", total=total)

        def update(title: str, done: float, earlier: float) -> None:
            bar.update(
                task, description=title, completed=done - earlier, total=total - earlier
            )

        yield update


def _plain_shares(total: float) -> Callable[[str, float, float], None]:
    started = time.monotonic()

    def report(title: str, done: float, earlier: float) -> None:
        line = f"{title}; study {100 * done / total:.0f} % scanned"
        if earlier < done < total:
            rate = (time.monotonic() - started) / (done - earlier)
            line += f", about {rate * (total - done):.0f} s left"
        say(line)

    return report
