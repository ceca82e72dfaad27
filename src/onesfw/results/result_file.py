"""A result on disk: one safetensors file, the arrays as tensors, the rest, the structure of x included, as JSON."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from onesfw.files import Tensors
from onesfw.results.status import Status
from onesfw.results.trace import TRACE_FIELDS, Trace
from onesfw.trees import Tree

if TYPE_CHECKING:
    from onesfw.results.result import Result

NOT_SAVED = ("vertices", "state")


def pack_result(result: Result) -> tuple[dict[str, Any], Tensors]:
    """A result as JSON and tensors; `vertices` and `state` are left out.

    x may be an array or a tree of dicts, lists, tuples and None; named tuples come back as plain tuples. Any other
    node raises a TypeError.
    """
    tensors: Tensors = {}
    content: dict[str, Any] = {}
    for field in fields(result):
        name, value = field.name, getattr(result, field.name)
        if name in ("x", "x_last"):
            content[name] = encode_tree(value, name, tensors)
        elif name == "status":
            content[name] = value.name if isinstance(value, Status) else [status.name for status in value]
        elif name == "trace":
            content[name] = encode_trace(value, tensors)
        elif name not in NOT_SAVED:
            content[name] = encode(value, name, tensors)
    return content, tensors


def unpack_result(content: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
    """A `Result`'s fields from the metadata's JSON and the tensors."""
    values: dict[str, Any] = {}
    for name, node in content.items():
        if name in ("x", "x_last"):
            values[name] = decode_tree(node, tensors)
        elif name == "status":
            values[name] = Status[node] if isinstance(node, str) else tuple(Status[word] for word in node)
        elif name == "trace":
            values[name] = decode_trace(node, tensors)
        else:
            values[name] = decode(node, tensors)
    return values


def encode_trace(trace: Trace, tensors: Tensors) -> Any:
    """The columns of a trace as JSON and tensors."""
    return {column: encode(getattr(trace, column), f"trace.{column}", tensors) for column in TRACE_FIELDS}


def decode_trace(node: Any, tensors: Tensors) -> Trace:
    """The trace that `encode_trace` was given."""
    return Trace(**{column: decode(node[column], tensors) for column in TRACE_FIELDS})


def encode(value: Any, name: str, tensors: Tensors) -> Any:
    """A number, a word, None or an array as JSON; arrays go to `tensors` under `name`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    array = np.asarray(value, order="C")
    if array.dtype == object:  # numbers among which some are None
        return {"objects": [encode(entry, name, tensors) for entry in array.tolist()]}
    tensors[name] = array
    return {"tensor": name}


def decode(node: Any, tensors: Tensors) -> Any:
    """What `encode` was given."""
    if not isinstance(node, dict):
        return node
    if "float" in node:
        return float(node["float"])
    if "objects" in node:
        return np.asarray([decode(entry, tensors) for entry in node["objects"]], dtype=object)
    return tensors[node["tensor"]]


def encode_tree(tree: Tree, name: str, tensors: Tensors) -> Any:
    """The structure of a tree as JSON; its arrays go to `tensors` under the path that leads to them."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        for key in tree:
            if isinstance(key, bool) or not isinstance(key, str | int):
                raise TypeError(f"{name}: a saved tree has words or integers for keys, got {key!r}; rename the key")
        return {"dict": [[key, encode_tree(node, f"{name}.{key!r}", tensors)] for key, node in tree.items()]}
    if isinstance(tree, list | tuple):
        kind = "list" if isinstance(tree, list) else "tuple"
        return {kind: [encode_tree(node, f"{name}.{place}", tensors) for place, node in enumerate(tree)]}
    if isinstance(tree, jax.Array | np.ndarray | np.generic | float):
        tensors[name] = np.asarray(tree, order="C")
        return {"tensor": name}
    if callable(getattr(tree, "save", None)):
        kind = type(tree).__name__
        raise TypeError(f"{name}: a {kind} has a file of its own: result.x.save(path), and {kind}.load(path)")
    raise TypeError(
        f"{name}: a tree of dicts, lists, tuples, None and arrays can be saved, not a {type(tree).__name__}; "
        "convert it with dataclasses.replace(result, x=..., x_last=...)"
    )


def decode_tree(node: Any, tensors: Tensors) -> Tree:
    """The tree that `encode_tree` was given."""
    if node is None:
        return None
    if "dict" in node:
        return {key: decode_tree(child, tensors) for key, child in node["dict"]}
    if "list" in node:
        return [decode_tree(child, tensors) for child in node["list"]]
    if "tuple" in node:
        return tuple(decode_tree(child, tensors) for child in node["tuple"])
    return tensors[node["tensor"]]
