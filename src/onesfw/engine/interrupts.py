"""Ctrl-C as a wish to stop, not as an exception in the middle of a step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def catch_interrupt() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; a second one raises KeyboardInterrupt as usual.

    Outside the main thread, where Python allows no signal handlers, the event is never set.
    """
    wished = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield wished
        return

    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        wished.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield wished
    finally:
        signal.signal(signal.SIGINT, before)
