"""What a reader or loader is to `fuzz.py`: how a valid file is made, how it is read, and what a plain parser reads."""

from __future__ import annotations

import abc
import gzip
import random
import string
from pathlib import Path
from typing import Any


class Reader(abc.ABC):
    """A reader or loader under test."""

    name: str
    suffix = ""
    share = 10
    """How often it is tried, in relation to the others."""
    sealed = False
    """Whether a checksum guards the file: what is read must then be what was written."""

    @abc.abstractmethod
    def make(self, rng: random.Random, folder: Path) -> bytes:
        """A valid file."""

    @abc.abstractmethod
    def read(self, path: Path) -> Any:
        """What the library makes of a file, in a form that can be compared."""

    def strange(self, rng: random.Random, whole: bytes) -> bytes:
        """A file that is wrong in its meaning rather than in its bytes; the valid one where there is no such thing."""
        return whole

    def expect(self, data: bytes) -> Any:
        """What a plain parser makes of a file; None where it cannot say."""
        return None


def decimal(rng: random.Random) -> str:
    """A number in digits that single precision and every parser agree on."""
    return rng.choice([str(rng.randint(-99, 99)), f"{rng.randint(-9, 9)}.{rng.choice(['5', '25', '125', '0'])}"])


def clean(data: bytes) -> str | None:
    """A text without anything that readers may differ about; it may be compressed."""
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except Exception:
            return None
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        return None
    return text if all(letter in string.printable and letter not in "\r\x0b\x0c\"'" for letter in text) else None
