"""Runs that survive being killed: the loop's state on disk, by Orbax, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onesfw import files
from onesfw.trees import Tree

INTERVAL = 10.0  # seconds between saves, at least
MARK = "onesfw-checkpoint.json"
REMEDY = "choose another path, or delete it to start anew"

_lock = threading.Lock()  # replicates save from their own threads; Orbax is asked one at a time


class CheckpointWarning(UserWarning):
    """A save failed; the run goes on, and what was saved before is still there."""


@dataclass
class Saved:
    """What a run needs to go on, beside the loop's state."""

    state: Tree
    done: int
    weight: float
    seconds: float
    evaluation_seconds: float
    rows: list[dict[str, Any]]


def open_folder(path: str | Path, parts: dict[str, str]) -> Path:
    """The folder of a run with this fingerprint: new, empty, or of the very same run; otherwise a sentence."""
    if "\0" in str(path):
        raise ValueError(f"checkpoint: {str(path)!r} holds a null character, which no path may")
    folder = Path(path).absolute()
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"checkpoint: {path} is a file; give the path of a folder")
    mark = folder / MARK
    if not mark.exists():
        if folder.exists() and any(not entry.name.startswith(f".{MARK}") for entry in folder.iterdir()):
            raise ValueError(f"checkpoint: the folder {path} is not empty and holds no run of onesfw; {REMEDY}")
        folder.mkdir(parents=True, exist_ok=True)
        files.write_whole(mark, json.dumps(parts, indent=1).encode())
        return folder
    try:
        saved = json.loads(mark.read_text())
        different = [name for name in {**saved, **parts} if saved.get(name) != parts.get(name)]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"checkpoint: {mark} cannot be read ({error}); {REMEDY}") from error
    if different:
        shown = "; ".join(f"{n} (saved: {saved.get(n, 'free')}, now: {parts.get(n, 'free')})" for n in different)
        raise ValueError(f"checkpoint: {path} belongs to a run with another {shown}; {REMEDY}")
    return folder


class Checkpoint:
    """One run's saves in a folder of its own, the newest two of them."""

    def __init__(self, folder: Path, like: Tree) -> None:
        """`like` is a state of the run, for its structure, shapes and dtypes."""
        import orbax.checkpoint as ocp

        logging.getLogger("absl").setLevel(logging.ERROR)  # Orbax reports each save
        self.orbax, self.folder = ocp, folder
        self.leaves, self.structure = jax.tree.flatten(like)
        options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=False)
        self.manager = ocp.CheckpointManager(folder, options=options)
        self.last = time.monotonic()

    def due(self) -> bool:
        """Whether the last save lies `INTERVAL` seconds back."""
        return time.monotonic() - self.last >= INTERVAL

    def load(self) -> Saved | None:
        """The newest save, or None where there is none; a damaged one raises a sentence."""
        step = self.manager.latest_step()
        if step is None:
            return None
        ocp, place = self.orbax, self.folder / str(step)
        like = {f"leaf{i}": np.zeros(leaf.shape, leaf.dtype) for i, leaf in enumerate(self.leaves)}
        try:
            arguments = ocp.args.Composite(state=ocp.args.StandardRestore(like), progress=ocp.args.JsonRestore())
            with _lock:
                found = self.manager.restore(step, args=arguments)
            leaves = [np.asarray(found.state[name]) for name in like]
            progress = dict(found.progress)
            sound = progress.pop("sha256") == digest(json.dumps(progress, sort_keys=True), *leaves)
        except Exception as error:
            reason = short(error)
            raise ValueError(f"checkpoint: the save {place} is damaged ({reason}); {REMEDY}") from error
        if not sound:
            raise ValueError(f"checkpoint: the save {place} is damaged; {REMEDY}")
        progress["rows"] = [restored_row(row) for row in progress["rows"]]
        return Saved(jax.tree.unflatten(self.structure, [jnp.asarray(leaf) for leaf in leaves]), **progress)

    def save(self, saved: Saved) -> None:
        """Add a save; where the disk refuses, warn and keep the earlier ones."""
        ocp = self.orbax
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(saved.state)]
        progress = {
            "done": saved.done,
            "weight": saved.weight,
            "seconds": saved.seconds,
            "evaluation_seconds": saved.evaluation_seconds,
            "rows": [{name: plain(value) for name, value in row.items()} for row in saved.rows],
        }
        progress["sha256"] = digest(json.dumps(progress, sort_keys=True), *leaves)
        state = {f"leaf{i}": leaf for i, leaf in enumerate(leaves)}
        try:
            arguments = ocp.args.Composite(state=ocp.args.StandardSave(state), progress=ocp.args.JsonSave(progress))
            with _lock:
                if saved.done not in self.manager.all_steps():
                    self.manager.save(saved.done, args=arguments)
        except Exception as error:
            reason = short(error)
            warnings.warn(
                f"checkpoint: the state after step {saved.done:,} could not be saved in {self.folder} ({reason}); "
                "the run goes on, and the earlier saves are kept",
                CheckpointWarning,
                stacklevel=2,
            )
        self.last = time.monotonic()

    def close(self) -> None:
        """Let go of the folder."""
        self.manager.close()


def digest(*parts: Any) -> str:
    """The first 16 hexadecimal digits of a SHA-256 over texts and arrays with their shapes and dtypes."""
    hasher = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            hasher.update(part.encode())
        else:
            array = np.ascontiguousarray(part)
            hasher.update(f"{array.dtype}{array.shape}".encode())
            hasher.update(array.reshape(-1).view(np.uint8).data)
    return hasher.hexdigest()[:16]


def short(error: Exception) -> str:
    """The beginning of an error's first line; Orbax tells its whole configuration."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return line if len(line) <= 160 else f"{line[:160]}…"


def plain(value: Any) -> Any:
    """A row's entry as JSON knows it: NaN as None, arrays as lists."""
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def restored_row(row: dict[str, Any]) -> dict[str, Any]:
    """The row that `plain` wrote."""

    def back(value: Any) -> Any:
        if isinstance(value, list):
            return np.asarray([np.nan if v is None else v for v in value])
        return np.nan if value is None else value

    return {name: back(value) for name, value in row.items()}
