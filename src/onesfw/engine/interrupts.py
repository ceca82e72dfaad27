"""Ctrl-C as a wish to stop, not as an exception in the middle of a step; and never lost."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_SECONDS = 0.05  # after which a dropped KeyboardInterrupt is raised again


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
        with keep_interrupts():
            yield wished
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def keep_interrupts() -> Iterator[None]:
    """Raise a KeyboardInterrupt again that Python has dropped.

    It drops whatever is raised in a callback of the garbage collector, and JAX has such a callback, which runs often
    while a run is built: a Ctrl-C that came just then would be lost.
    """
    hook = sys.unraisablehook

    def dropped(unraisable: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            hook(unraisable)
            return
        # From another thread, and later: raised here and now it would be dropped again.
        again = threading.Timer(AGAIN_SECONDS, _thread.interrupt_main)
        again.daemon = True
        again.start()

    sys.unraisablehook = dropped
    try:
        yield
    finally:
        sys.unraisablehook = hook
