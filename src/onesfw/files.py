"""Files: written whole or not at all, read with an error for whatever is wrong; arrays under a SHA-256, no pickle."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

Tensors = dict[str, np.ndarray]

ABANDONED_SECONDS = 2.0  # a writer locks its temporary file long before that
KINDS = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def write_tensors(path: str | Path, form: str, version: int, content: dict[str, Any], tensors: Tensors) -> None:
    """Write tensors, and JSON content as metadata, under a SHA-256 of both; whole or not at all.

    `form` is the file's format, such as onesfw.results.result; its last word names the content in the metadata.
    """
    metadata = {
        "format": form,
        "version": str(version),
        form.rpartition(".")[2]: json.dumps(content, allow_nan=False, sort_keys=True),
    }
    from safetensors.numpy import save as save_tensors

    metadata["sha256"] = digest(metadata, tensors)
    write_whole(path, save_tensors(tensors, metadata))


OTHER_KINDS = {
    "onesfw.lowrank": (
        ": it is a low-rank model, as `onesfw complete --model` writes; onesfw.lowrank.LowRank.load(path).predict("
        "rows, cols) predicts its entries"
    ),
}
"""Files that are taken for others: what they are, and what reads them."""


def read_tensors(path: str | Path, form: str, version: int, noun: str) -> tuple[dict[str, Any], Tensors]:
    """The content and tensors that `write_tensors` wrote; a damaged or foreign file raises ValueError."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as load_tensors

    check_path(path)
    data = read_whole(path, noun)
    try:
        metadata, tensors = read_metadata(data), load_tensors(data)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(
            f"{path} is not a saved {noun}, or it is damaged: it is no readable safetensors file"
        ) from error
    if metadata.get("format") != form:
        other = OTHER_KINDS.get(str(metadata.get("format")), "")
        raise ValueError(f"{path} is a safetensors file, but not a saved {noun} of onesfw{other}")
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


def check_path(path: object) -> None:
    """Raise TypeError or ValueError where `path` is no path at all."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise TypeError(f"path must be the path of a file, got {path!r}")
    if "\0" in str(path):
        raise ValueError(f"path must not hold a null character, got {str(path)!r}")


def read_whole(path: str | Path, noun: str) -> bytes:
    """A file's bytes; an OSError says what is missing."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}; give the path that the {noun} was saved under") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder; give the path of a file in it") from None


def check_target(path: str | Path) -> None:
    """Raise OSError where `path` cannot be written, before a run is spent on it.

    Makes the folders on the way, and removes what killed writers of the same file left there. A symlink is followed;
    what is there and no regular file, such as a device or a pipe, is refused: the rename would replace it.
    """
    check_path(path)
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the path of a file in it")
    if target.is_symlink():
        raise OSError(f"{path} is a link that leads back to itself; give the path of a regular file")
    check_regular(path)
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
    remove_abandoned(target)


def check_regular(path: str | Path) -> None:
    """Raise OSError where something stands under `path`, and it is no regular file."""
    try:
        mode = os.stat(path).st_mode
    except OSError:  # nothing is there, or it cannot be reached, which writing will say
        return
    if not stat.S_ISREG(mode):
        kind = KINDS.get(stat.S_IFMT(mode), "no regular file")
        raise OSError(f"{path} is {kind}, which writing would replace; give the path of a regular file")


def temporary_beside(target: Path) -> Path:
    """A name for what will be `target`, in the same folder."""
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")


def remove_abandoned(target: Path) -> None:
    """Remove the temporary files that killed writers of `target` left: old ones that nobody holds a lock on."""
    pattern = re.compile(rf"\.{re.escape(target.name[:100])}\.[0-9a-f]{{12}}\.tmp")
    try:
        names = [name for name in os.listdir(target.parent) if pattern.fullmatch(name)]
    except OSError:
        return
    for name in names:
        left = target.parent / name
        try:
            if not stat.S_ISREG(os.lstat(left).st_mode):  # not ours; to open a pipe would wait for ever
                continue
            with open(left, "rb") as file:
                old = time.time() - os.fstat(file.fileno()).st_mtime > ABANDONED_SECONDS
                if old and lock(file):
                    left.unlink()
        except OSError:  # another run was faster, or the file is not ours
            continue


def lock(file: BinaryIO) -> bool:
    """Hold a file as long as it is open, against `remove_abandoned`; whether nobody else does."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):  # no locks on this system: then nothing is removed
        return False
    return True


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
    temporary = temporary_beside(target)
    try:
        with open(temporary, "xb") as file:
            lock(file)
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.utime(temporary)  # fresh, so that nobody takes it for abandoned between here and the rename
        os.replace(temporary, target)
    except OSError as error:
        if error.errno is None:  # its message says all
            raise
        raise type(error)(error.errno, f"{path} could not be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Remove what killed writers of this file left beside it."""
    for left in path.parent.glob(f".{path.name[:100]}.*.tmp"):
        left.unlink(missing_ok=True)
