"""A Dask cluster of two processes on this machine's loopback."""

import contextlib

import pytest


@contextlib.contextmanager
def dask_cluster():
    """The cluster, with a client that joblib finds; its dashboard, too, takes any port that is free."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address=None,
        ) as local,
        distributed.Client(local),
    ):
        yield local
