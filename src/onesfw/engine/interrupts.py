"""Ctrl-C as a wish to stop, not as an exception in the middle of a step; and never lost."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_SECONDS = 0.05  # after which a dropped KeyboardInterrupt is raised again
GRACE_SECONDS = 1.0  # in which a command may end by itself after a Ctrl-C
INTERRUPTED = 130  # the exit code
MESSAGE = "onesfw: interrupted"

taken = threading.Event()  # a run has the last Ctrl-C for a wish, and ends by itself


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
        taken.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        with keep_interrupts():
            yield wished
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def cut_short(wished: threading.Event) -> Iterator[None]:
    """A block that waits for other processes, which the first Ctrl-C ends here and now; it sets the event too.

    KeyboardInterrupt goes through the block, so that joblib ends its workers, and no further.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        wished.set()
        taken.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    except KeyboardInterrupt:
        if not wished.is_set():
            raise
    finally:
        if not wished.is_set():  # afterwards a second Ctrl-C raises
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


def end_on_interrupt() -> None:
    """From now on a Ctrl-C that no run takes for a wish ends the program within a second, whatever it is doing.

    Python handles a signal between two of its own instructions: not while XLA compiles or a library is loaded, and a
    KeyboardInterrupt may be swallowed by what it hits. The number of the signal comes through a pipe at once, to a
    thread that needs none of this. Files are written whole or not at all, so that nothing is torn.
    """
    if os.name != "posix":
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, interrupt)
    threading.Thread(target=watch, args=(reader,), daemon=True).start()


def interrupt(number: int, frame: FrameType | None) -> None:
    """KeyboardInterrupt, as Python raises it; but while a library is loaded, the end: its C++ code may abort on one."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            leave()
        frame = frame.f_back
    raise KeyboardInterrupt


def leave() -> None:
    """End the program here and now."""
    os.write(2, f"{MESSAGE}\n".encode())
    os._exit(INTERRUPTED)


def watch(reader: int) -> None:
    """End the program for each Ctrl-C that comes through the pipe and is not taken in time."""
    while numbers := os.read(reader, 1):
        if numbers[0] != signal.SIGINT:
            continue
        if not taken.wait(GRACE_SECONDS):
            leave()
        taken.clear()
