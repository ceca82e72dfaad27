"""Small calls to BLAS on one thread: waking others costs more than they save, and far more on busy cores."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache

WORTH_THREADS = 1e11  # operations from which BLAS may use as many threads as it likes: seconds of one core


class OneThread(AbstractContextManager[None]):
    """BLAS on one thread while a block of this runs: the first one to enter sets the limit, the last takes it back."""

    def __init__(self) -> None:
        from threadpoolctl import ThreadpoolController

        # Finding the libraries takes milliseconds: once. Setting their threads takes microseconds.
        self.libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        self.lock, self.blocks = threading.Lock(), 0
        self.before: list[int] = []

    def __enter__(self) -> None:
        with self.lock:
            if self.blocks == 0:
                self.before = [library.num_threads for library in self.libraries]
                for library in self.libraries:
                    library.set_num_threads(1)
            self.blocks += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.blocks -= 1
            if self.blocks == 0:
                for library, threads in zip(self.libraries, self.before, strict=True):
                    library.set_num_threads(threads)


@cache
def one_thread() -> OneThread:
    """The process's own."""
    return OneThread()


def quietly(operations: float) -> AbstractContextManager[None]:
    """One thread for a block that has so few operations to do; as it is for larger ones."""
    return nullcontext() if operations >= WORTH_THREADS else one_thread()
