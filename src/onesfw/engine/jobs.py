"""Where work is done that needs nobody else: in this process, or on the joblib backend that the user chose.

Loky, Dask, Ray and Spark are chosen by `joblib.parallel_config(backend=…)`; without it nothing leaves the process. A
task is a pure function of its arguments, so that its result does not depend on where it was computed, nor on whether a
cluster had to compute it twice. The logger `onesfw.jobs` names the worker of each.
"""

from __future__ import annotations

import importlib
import logging
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Generic, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

Result = TypeVar("Result")
log = logging.getLogger("onesfw.jobs")


def away() -> bool:
    """Whether the user chose a backend whose workers do not share this process's memory.

    False inside a worker: what it was sent to do it does itself.
    """
    backend, _ = get_active_backend(prefer="threads")
    return not (nested() or getattr(backend, "supports_sharedmem", False))


def nested() -> bool:
    """Whether this code runs as a task of joblib's."""
    backend, _ = get_active_backend()
    if backend.nesting_level:
        return True
    distributed = sys.modules.get("distributed")  # Dask's backend does not count the levels
    if distributed is None:
        return False
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


def never() -> bool:
    """False: work elsewhere does not hear of a Ctrl-C."""
    return False


def ignored(news: object) -> None:
    """Nothing: work elsewhere cannot tell of its progress."""


def workers(n_jobs: int | None) -> int:
    """How many tasks are done at a time, as scikit-learn counts them.

    None is one, or what `joblib.parallel_config` says; −1 is all cores, or all workers of a cluster. Inside a task
    None is one.
    """
    if n_jobs == 0:  # which some backends take for all
        raise ValueError("n_jobs: 0 has no meaning; give a number of workers, -1 for all, or None")
    return 1 if n_jobs is None and nested() else effective_n_jobs(n_jobs)


@dataclass(frozen=True)
class Done(Generic[Result]):
    """What a task came to, who did it and how long it took."""

    result: Result
    worker: str
    seconds: float


@dataclass(frozen=True, eq=False)
class Task(Generic[Result]):
    """A function with all its arguments, called without any.

    Joblib would hand large arguments to one of Dask's workers apart from the function, and when that one dies the task
    could not be done again. Dask's dashboard shows the function's name.
    """

    function: Callable[..., Result]
    arguments: tuple[object, ...]

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", "task")

    def __call__(self) -> Done[Result]:
        begun = time.perf_counter()
        result = self.function(*self.arguments)
        return Done(result, worker_name(), time.perf_counter() - begun)


def worker_name() -> str:
    """Who does this: the address of a Dask worker, or the process and its machine."""
    distributed = sys.modules.get("distributed")
    if distributed is not None:
        with suppress(ValueError):
            return str(distributed.get_worker().address)
    return f"process {os.getpid()} on {platform.node()}"


def logged(task: Task[Result], place: int, count: int, done: Done[Result]) -> Result:
    """The result, after a line in the log that names the worker."""
    log.info("%s %d of %d: %s, %.3f s", task.__name__, place + 1, count, done.worker, done.seconds)
    return done.result


def together(function: Callable[..., Result], tasks: Sequence[tuple[object, ...]], *, shared: bool) -> list[Result]:
    """[function(*task) for task in tasks], all at a time.

    With `shared`, in threads whatever the user chose: the function changes what it is given, or the arguments are
    dearer to send than to use. Otherwise in threads too, unless the user chose another backend.
    """
    if len(tasks) == 1:
        return [function(*tasks[0])]
    hint = {"require": "sharedmem"} if shared or nested() else {"prefer": "threads"}
    calls = [Task(function, task) for task in tasks]
    found: list[Done[Result]] = Parallel(n_jobs=len(tasks), batch_size=1, **hint)(delayed(call)() for call in calls)
    return [logged(call, place, len(calls), done) for place, (call, done) in enumerate(zip(calls, found, strict=True))]


def in_order(
    function: Callable[..., Result],
    tasks: Sequence[tuple[object, ...]],
    begin: Callable[[int], None] = lambda place: None,
    n_jobs: int | None = None,
) -> Iterator[Result]:
    """function(*task) for each task, in order and as it comes.

    On the user's backend, as many at a time as it has, or in `n_jobs` threads of this process. `begin` hears a task's
    number before its result is waited for.
    """
    backend, _ = get_active_backend(prefer="threads")
    streams = getattr(backend, "supports_return_generator", False)
    # One task at a time: they last seconds, and a worker that dies costs one of them.
    pool = Parallel(
        n_jobs=workers(n_jobs), batch_size=1, return_as="generator" if streams else "list", prefer="threads"
    )
    calls = [Task(function, task) for task in tasks]
    results = iter(pool(delayed(call)() for call in calls))
    for place, call in enumerate(calls):
        begin(place)
        yield logged(call, place, len(calls), next(results))


def send_whole(module: ModuleType) -> None:
    """Let functions of a module travel as they are written: workers elsewhere cannot import it."""
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):  # older versions of joblib have their own
        with suppress(ImportError):
            importlib.import_module(name).register_pickle_by_value(module)
