"""Ctrl-C: a wish within a run, an exception before it, and never lost."""

import gc
import os
import signal
import threading
import time

import jax.numpy as jnp
import numpy as np
import pytest

import onesfw as fw
from onesfw.engine import jobs
from onesfw.engine.interrupts import catch_interrupt, cut_short, keep_interrupts


@pytest.fixture(autouse=True)
def _pythons_own_handler():
    """Whatever libraries of other tests have put in its place."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def in_collector():
    """A callback of the garbage collector, as JAX has one, in which a Ctrl-C arrives."""
    rounds = []

    def callback(phase, info):
        if phase == "start" and not rounds:
            rounds.append(phase)
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):  # the handler runs between two of these
                pass

    yield lambda: gc.callbacks.append(callback)
    if callback in gc.callbacks:
        gc.callbacks.remove(callback)


def wait(seconds=5.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)


def test_an_interrupt_that_the_collector_drops_comes_again(in_collector):
    collected = []

    def work():
        with keep_interrupts():
            in_collector()
            gc.collect()  # takes seconds in a process that has compiled much
            collected.append(time.monotonic())
            wait()

    with pytest.raises(KeyboardInterrupt):
        work()
    assert time.monotonic() - (collected or [time.monotonic()])[0] < 1.0


def test_a_run_notices_an_interrupt_in_the_collector_while_it_is_built(in_collector):
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.ones((3, 2)))

    collected = []

    def evaluate(x):  # called at the starting point, before the first step
        in_collector()
        gc.collect()
        collected.append(time.monotonic())
        wait()
        return 0.0

    with pytest.raises(KeyboardInterrupt):
        fw.minimize(objective, fw.sets.L2Ball(1.0, shape=2), steps=10, evaluate=evaluate)
    assert time.monotonic() - (collected or [time.monotonic()])[0] < 1.0


def test_a_run_notices_an_interrupt_in_the_collector_within_its_steps(in_collector):
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.ones((3, 2)))
    sent = []

    def callback(row, x):
        if not sent:
            in_collector()
            gc.collect()
            sent.append(time.monotonic())

    result = fw.minimize(
        objective, fw.sets.L2Ball(1.0, shape=2), steps=2_000_000_000, every=[1], evaluate=False, callbacks=callback
    )
    assert result.status is fw.Status.INTERRUPTED
    assert time.monotonic() - sent[0] < 2.0


def test_the_second_interrupt_raises_even_in_the_collector(in_collector):
    def work():
        with catch_interrupt() as wished:
            os.kill(os.getpid(), signal.SIGINT)
            assert wished.wait(1.0)
            in_collector()
            gc.collect()
            wait()

    with pytest.raises(KeyboardInterrupt):
        work()


def test_the_second_interrupt_raises_after_a_wait_that_was_cut_short():
    def work():
        with catch_interrupt() as wished:
            with cut_short(wished):
                os.kill(os.getpid(), signal.SIGINT)
                wait()
            assert wished.is_set()
            os.kill(os.getpid(), signal.SIGINT)
            wait()

    with pytest.raises(KeyboardInterrupt):
        work()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_errors_in_the_collector_are_reported_as_before(monkeypatch):
    seen = []
    monkeypatch.setattr("sys.unraisablehook", seen.append)

    def callback(phase, info):
        raise RuntimeError

    gc.callbacks.append(callback)
    try:
        with keep_interrupts():
            gc.collect()
    finally:
        gc.callbacks.remove(callback)
    assert seen
    assert all(report.exc_type is RuntimeError for report in seen)


def test_in_other_threads_nothing_is_set():
    events = []

    def work():
        with catch_interrupt() as wished:
            events.append(wished.is_set())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert events == [False]


@pytest.mark.parametrize("how", ["sweep", "replicates"])
def test_an_interrupt_ends_what_other_processes_do(monkeypatch, how):
    """One task comes back, and Ctrl-C while the others are waited for: they end at once, as in threads."""

    def in_order(function, tasks):
        yield function(*tasks[0])
        os.kill(os.getpid(), signal.SIGINT)
        wait()
        raise AssertionError("the interrupt was not heard")

    monkeypatch.setattr(jobs, "away", lambda: True)
    monkeypatch.setattr(jobs, "in_order", in_order)
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.ones((3, 2)))
    balls = [fw.sets.L2Ball(radius, shape=2) for radius in range(1, 9)]
    if how == "sweep":
        found = fw.sweep(objective, balls, steps=200)
        statuses = [tuple(fw.Status)[place] for place in found.status.ravel()]
    else:
        found = fw.minimize(objective, balls[0], steps=200, replicates=8)
        statuses = list(found.status)
    assert statuses == [fw.Status.STEPS_DONE] + [fw.Status.INTERRUPTED] * 7
    assert np.ravel(found.steps).tolist() == [200] + [1] * 7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
