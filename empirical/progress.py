"""Progress on standard error: a bar with time left on a terminal, else plain lines."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["say", "window_progress"]


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
