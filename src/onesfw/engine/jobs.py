"""Where work is done that needs nobody else: in this process, or on the joblib backend that the user chose.

Loky, Dask, Ray and Spark are chosen by `joblib.parallel_config(backend=…)`; without it nothing leaves the process. A
task is a pure function of its arguments, so that its result does not depend on where it was computed, nor on whether a
cluster had to compute it twice.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Generic, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

Result = TypeVar("Result")


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


def workers(n_jobs: int | None) -> int:
    """How many tasks are done at a time, as scikit-learn counts them.

    None is one, or what `joblib.parallel_config` says; −1 is all cores, or all workers of a cluster. Inside a task
    None is one.
    """
    return 1 if n_jobs is None and nested() else effective_n_jobs(n_jobs)


@dataclass(frozen=True, eq=False)
class Parcel(Generic[Result]):
    """A task with all it needs: joblib would hand large arguments to one of Dask's workers apart from it, and when that
    one dies the task could not be done again."""

    function: Callable[..., Result]
    arguments: tuple[object, ...]


def do(parcel: Parcel[Result]) -> Result:
    """The task."""
    return parcel.function(*parcel.arguments)


def together(function: Callable[..., Result], tasks: Sequence[tuple[object, ...]], *, shared: bool) -> list[Result]:
    """[function(*task) for task in tasks], all at a time.

    With `shared`, in threads whatever the user chose: the function changes what it is given, or the arguments are
    dearer to send than to use. Otherwise in threads too, unless the user chose another backend.
    """
    if len(tasks) == 1:
        return [function(*tasks[0])]
    hint = {"require": "sharedmem"} if shared or nested() else {"prefer": "threads"}
    found: list[Result] = Parallel(n_jobs=len(tasks), batch_size=1, **hint)(
        delayed(do)(Parcel(function, task)) for task in tasks
    )
    return found


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
    results = iter(pool(delayed(do)(Parcel(function, task)) for task in tasks))
    for place in range(len(tasks)):
        begin(place)
        yield next(results)


def send_whole(module: ModuleType) -> None:
    """Let functions of a module travel as they are written: workers elsewhere cannot import it."""
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):  # older versions of joblib have their own
        with suppress(ImportError):
            importlib.import_module(name).register_pickle_by_value(module)
