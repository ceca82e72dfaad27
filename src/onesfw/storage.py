"""Results and models on disk: one safetensors file, checked by a SHA-256 over its tensors and metadata, without pickle.

The arrays are the file's tensors; everything else, the structure of x included, is JSON in its metadata. A file is
written whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from onesfw.result import TRACE_FIELDS, Result, Trace
from onesfw.status import Status
from onesfw.trees import Tree

FORMAT, VERSION = "onesfw.result", 1
NOT_SAVED = ("state",)
Tensors = dict[str, np.ndarray]


def save_result(result: Result, path: str | Path) -> None:
    """Write a result to `path`; `state` is left out.

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
            content[name] = {
                column: encode(getattr(value, column), f"trace.{column}", tensors) for column in TRACE_FIELDS
            }
        elif name not in NOT_SAVED:
            content[name] = encode(value, name, tensors)
    write_tensors(path, FORMAT, VERSION, content, tensors)


def load_result(path: str | Path) -> Result:
    """Read what `save_result` wrote; the arrays come back as NumPy arrays of the same dtypes.

    A missing path raises FileNotFoundError, a folder IsADirectoryError, and a damaged or foreign file ValueError.
    """
    content, tensors = read_tensors(path, FORMAT, VERSION, "result")
    try:
        return decode_result(content, tensors)
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is not a saved result of this version of onesfw: its fields do not fit") from error


def write_tensors(path: str | Path, form: str, version: int, content: dict[str, Any], tensors: Tensors) -> None:
    """Write tensors, and JSON content as metadata, under a SHA-256 of both; whole or not at all.

    `form` is the file's format, such as onesfw.result; its last word names the content in the metadata.
    """
    metadata = {
        "format": form,
        "version": str(version),
        form.rpartition(".")[2]: json.dumps(content, allow_nan=False, sort_keys=True),
    }
    metadata["sha256"] = digest(metadata, tensors)
    write_whole(path, save_tensors(tensors, metadata))


def read_tensors(path: str | Path, form: str, version: int, noun: str) -> tuple[dict[str, Any], Tensors]:
    """The content and tensors that `write_tensors` wrote; a damaged or foreign file raises ValueError."""
    check_path(path)
    data = read_whole(path, noun)
    try:
        metadata, tensors = read_metadata(data), load_tensors(data)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(
            f"{path} is not a saved {noun}, or it is damaged: it is no readable safetensors file"
        ) from error
    if metadata.get("format") != form:
        raise ValueError(f"{path} is a safetensors file, but not a saved {noun} of onesfw")
    if metadata.get("version") != str(version):
        raise ValueError(
            f"{path} has format version {metadata.get('version')!r}, and this onesfw reads {version}; upgrade onesfw"
        )
    if metadata.get("sha256") != digest(metadata, tensors):
        raise ValueError(f"{path} is damaged: its content does not match its SHA-256; save the {noun} again")
    try:
        return json.loads(metadata[form.rpartition(".")[2]]), tensors
    except (KeyError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a saved {noun} of this version of onesfw: its fields do not fit") from error


def decode_result(content: dict[str, Any], tensors: Tensors) -> Result:
    """A `Result` from the metadata's JSON and the tensors."""
    values: dict[str, Any] = {}
    for name, node in content.items():
        if name in ("x", "x_last"):
            values[name] = decode_tree(node, tensors)
        elif name == "status":
            values[name] = Status[node] if isinstance(node, str) else tuple(Status[word] for word in node)
        elif name == "trace":
            values[name] = Trace(**{column: decode(node[column], tensors) for column in TRACE_FIELDS})
        else:
            values[name] = decode(node, tensors)
    return Result(**values)


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


def digest(metadata: dict[str, str], tensors: Tensors) -> str:
    """SHA-256 over the metadata (but the digest itself) and over each tensor's name, dtype, shape and bytes."""
    parts = [(key, value.encode()) for key, value in sorted(metadata.items()) if key != "sha256"]
    total = hashlib.sha256()
    for label, content in parts:
        total.update(f"{len(label)}:{label}:{len(content)}:".encode() + content)
    for name, array in sorted(tensors.items()):
        total.update(f"{len(name)}:{name}:{array.dtype.str}:{array.shape}:".encode())
        total.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)  # no copy
    return total.hexdigest()


def read_metadata(data: bytes) -> dict[str, str]:
    """The metadata of a safetensors file: an eight-byte length, then that much JSON."""
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length])["__metadata__"]
    if not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("metadata are words")
    return metadata


def check_path(path: Any) -> None:
    """Raise a sentence where `path` is no path at all."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise TypeError(f"path must be the path of a file, got {path!r}")
    if "\0" in str(path):
        raise ValueError(f"path must not hold a null character, got {str(path)!r}")


def read_whole(path: str | Path, noun: str) -> bytes:
    """A file's bytes, or a sentence."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}; give the path that the {noun} was saved under") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder; give the path of a file in it") from None


def check_target(path: str | Path) -> None:
    """Raise a sentence where `path` cannot be written, before a run is spent on it; makes the folders on the way."""
    check_path(path)
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the path of a file in it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(
            f"{path} cannot be written: something on the way to it is a file, not a folder"
        ) from None
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror or error}") from None
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"{path} cannot be written: no permission to write in {target.parent}")


def write_whole(path: str | Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    with whole_file(path) as file:
        file.write(data)


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write, whole or not at all: beside its place at first, then to the disk, then under its name.

    Where the block raises, nothing is left of it.
    """
    check_target(path)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        if error.errno is None:  # a sentence already
            raise
        raise type(error)(error.errno, f"{path} could not be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
