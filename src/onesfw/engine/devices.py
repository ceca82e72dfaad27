"""Replicates over several devices: each takes its share of them, and none has to hear of another.

`shard_map` over an axis of replicates: under `vmap` on accelerators, whose arithmetic it fills; one after the other on
host devices, which keeps the bits of a single run. Several processes need none of this: replicate r is the single run
with the key `fold_in(key, r)`, wherever it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from onesfw.trees import Tree

AXIS = "replicates"


def mesh_for(replicates: int | None) -> Mesh | None:
    """The devices among which so many replicates can be divided evenly; None where that is one."""
    devices = jax.local_devices()
    if replicates is None:
        return None
    count = max(count for count in range(1, min(len(devices), replicates) + 1) if replicates % count == 0)
    return None if count == 1 else Mesh(np.array(devices[:count]), (AXIS,))


def in_turn() -> bool:
    """Whether a device takes its replicates one after the other: a CPU, where each keeps the bits of a single run."""
    return jax.default_backend() == "cpu"


def each_replicate(
    function: Callable[..., Tree], carries: Sequence[bool], mesh: Mesh | None, most: int | None = None
) -> Callable[..., Tree]:
    """The function for all replicates, `most` of them at a time; `carries` says which arguments have their axis."""
    axes = tuple(0 if carried else None for carried in carries)
    if in_turn():
        shared = some_at_a_time(function, carries, None)
    else:
        shared = jax.vmap(function, axes) if most is None else some_at_a_time(function, carries, most)
    return shared if mesh is None else shared_out(shared, carries, mesh)


def shared_out(function: Callable[..., Tree], carries: Sequence[bool], mesh: Mesh) -> Callable[..., Tree]:
    """A function of many replicates, of which each device is given its share."""
    specs = tuple(PartitionSpec(AXIS) if carried else PartitionSpec() for carried in carries)
    divided: Callable[..., Tree] = jax.shard_map(
        function, mesh=mesh, in_specs=specs, out_specs=PartitionSpec(AXIS), check_vma=False
    )
    return divided


def some_at_a_time(function: Callable[..., Tree], carries: Sequence[bool], most: int | None) -> Callable[..., Tree]:
    """The function for so many replicates at a time; None: for one after the other, by the program of a single run."""

    def all_of(*args: Tree) -> Tree:
        own = tuple(arg for arg, carried in zip(args, carries, strict=True) if carried)

        def one(mine: tuple[Tree, ...]) -> Tree:
            rest = iter(mine)
            return function(*(next(rest) if carried else arg for arg, carried in zip(args, carries, strict=True)))

        return jax.lax.map(one, own, batch_size=most)

    return all_of


def shardings(mesh: Mesh | None, carries: Sequence[bool]) -> tuple[NamedSharding, ...] | None:
    """Where the arguments lie."""
    if mesh is None:
        return None
    specs = (PartitionSpec(AXIS) if carried else PartitionSpec() for carried in carries)
    return tuple(NamedSharding(mesh, spec) for spec in specs)
