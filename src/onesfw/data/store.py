"""Files elsewhere: URIs that pyarrow or fsspec open. Listed, opened, and tried again where the network fails.

No message shows what a URI carries beside the address: names, passwords and keys are left out.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from onesfw.arguments import named

URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
ATTEMPTS = 5
PAUSE = 0.5  # seconds before the second attempt; twice as many before each that follows
BUFFER = 4 << 20  # bytes that are read at once
REFUSED = ("ACCESS_DENIED", "INVALID_ACCESS", "SIGNATURE", "CREDENTIALS", "EXPIRED_TOKEN", "UNAUTHORIZED", "FORBIDDEN")
MISSING = ("NO_SUCH", "NOT FOUND", "NOT_FOUND", "DOES NOT EXIST", "RESOURCE_NOT_FOUND")
T = TypeVar("T")
log = logging.getLogger("onesfw.store")


class StoreError(OSError):
    """A store did not answer, after several attempts: what was learnt is kept, and the run can go on later."""


@dataclass(frozen=True)
class Entry:
    """A file of a store: its path there, its size, and what tells it from its earlier self."""

    path: str
    size: int
    stamp: str


class Store:
    """Where a URI points to, as a filesystem of pyarrow's."""

    def __init__(self, uri: str) -> None:
        self.uri, self.address = uri, address_of(uri)
        self.secrets = secrets_of(uri)
        self.filesystem, self.path = self.tried(lambda: open_filesystem(uri), self.address)

    def name_of(self, path: str) -> str:
        """A file's address as messages have it."""
        if URI.match(path):
            options = urlsplit(path).query
            mark = f"?…{hashlib.sha256(options.encode()).hexdigest()[:6]}" if options else ""  # names files apart
            return address_of(path) + mark
        scheme = URI.match(self.uri)
        return f"{scheme.group() if scheme else ''}{path}"

    def tried(self, action: Callable[[], T], name: str) -> T:
        """The result of an action, which is tried again where the store may recover."""
        pause = PAUSE
        for left in reversed(range(ATTEMPTS)):
            try:
                return action()
            except (FileNotFoundError, PermissionError, ImportError) as error:
                raise self.explained(error, name) from None
            except Exception as error:  # each engine has its own kinds
                known = self.explained(error, name)
                if not isinstance(known, StoreError) or not left:
                    raise known from None
                log.warning("%s; asked again in %g s", known, pause)
                time.sleep(pause)
                pause *= 2
        raise AssertionError("an attempt either returns or raises")

    def explained(self, error: BaseException, name: str) -> Exception:
        """The error for a user: the address, the reason without secrets, the remedy."""
        if isinstance(error, StoreError):
            return error
        if isinstance(error, ImportError):
            return ValueError(str(error))
        text = " ".join(str(error).split())
        found = re.search(r"AWS Error [A-Z_]+ during \w+ operation", text)
        reason = found.group() if found else text[:200]
        for secret in self.secrets:
            reason = reason.replace(secret, "…")
        upper = text.upper()
        if isinstance(error, PermissionError) or any(word in upper for word in REFUSED):
            return PermissionError(f"{name} is refused: {reason}; check the credentials, and who may read there")
        if isinstance(error, FileNotFoundError) or any(word in upper for word in MISSING):
            return FileNotFoundError(f"{named('source')}: there is no {name}; check the address ({reason})")
        if isinstance(error, ValueError | TypeError):
            return ValueError(f"{named('source')}: {name} cannot be opened: {reason}")
        return StoreError(f"{name} cannot be reached: {reason}; check the address and the network")

    def entries(self) -> list[Entry]:
        """The files that the URI stands for: itself, those a pattern matches, or all below a folder, sorted."""
        import pyarrow.fs as stores

        pattern = "*" in self.path
        base = self.path.split("*")[0].rpartition("/")[0] if pattern else self.path

        def listed() -> list[Any]:
            if not pattern:
                (info,) = self.filesystem.get_file_info([base])
                if info.type == stores.FileType.File:
                    return [info]
                if info.type == stores.FileType.NotFound:
                    raise self.absence(base)
            return self.filesystem.get_file_info(stores.FileSelector(base, recursive=True))

        infos = [info for info in self.tried(listed, self.address) if info.type == stores.FileType.File]
        if pattern:
            fits = translated(self.path)
            infos = [info for info in infos if fits.fullmatch(info.path)]
        elif [info.path for info in infos] != [base]:
            infos = [info for info in infos if not hidden(info.path[len(base) :])]
        return sorted((self.entry(info) for info in infos), key=lambda entry: entry.path)

    def entry(self, info: Any) -> Entry:
        """A file, with its ETag where fsspec tells it, else with the time it was changed."""
        size, changed = info.size, f"changed at {info.mtime_ns or 0}"
        if self.fsspec is not None:
            name = self.name_of(info.path)
            details = self.tried(lambda: self.fsspec.info(info.path), name)
            if details.get("mimetype") == "text/html":
                raise ValueError(
                    f"{named('source')}: {name} is a web page, not a file of rows; where it is a folder, give a "
                    f"pattern such as {self.address.rstrip('/')}/*.parquet, or a list of files"
                )
            size, tag = details.get("size"), details.get("ETag") or details.get("etag")
            changed = f"ETag {tag}" if tag else changed
            if size is None:
                raise ValueError(f"{named('source')}: the server does not tell the size of {name}; copy it here first")
        return Entry(info.path, int(size), f"{size} bytes, {changed}")

    @property
    def fsspec(self) -> Any:
        """fsspec's filesystem, where this is one; None for those of pyarrow."""
        return getattr(getattr(self.filesystem, "handler", None), "fs", None)

    def absence(self, path: str) -> Exception:
        """Why nothing is there: fsspec takes a server that does not answer for one that has no such file."""
        try:
            if self.fsspec is not None:
                self.fsspec.info(path)
        except FileNotFoundError as error:
            if isinstance(error.__cause__, Exception):
                return error.__cause__
        return FileNotFoundError(f"nothing at {self.address}")

    def open(self, entry: Entry) -> io.BufferedReader:
        """The bytes of a file, in any order."""
        return io.BufferedReader(Persistent(self, entry), BUFFER)

    def whole(self, entry: Entry) -> Any:
        """All bytes of a file at once, as a buffer of Arrow's."""

        def read() -> Any:
            with self.filesystem.open_input_file(entry.path) as file:
                return file.read_buffer()

        return self.tried(read, self.name_of(entry.path))

    def some(self, entry: Entry, begin: int, end: int) -> Any:
        """The bytes of a file from `begin` up to `end`, as a buffer of Arrow's."""

        def read() -> Any:
            with self.filesystem.open_input_file(entry.path) as file:
                file.seek(begin)
                return file.read_buffer(end - begin)

        return self.tried(read, self.name_of(entry.path))


class SeekableFile(io.RawIOBase):
    """A file of known size that is read from anywhere; `readinto` is left to the kinds of it."""

    def __init__(self, size: int) -> None:
        self.size, self.place = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.place = {os.SEEK_SET: 0, os.SEEK_CUR: self.place, os.SEEK_END: self.size}[whence] + offset
        return self.place


class Persistent(SeekableFile):
    """A file of a store that is opened again, where it was, when a read fails."""

    def __init__(self, store: Store, entry: Entry) -> None:
        super().__init__(entry.size)
        self.store, self.entry = store, entry
        self.file: Any = None

    def readinto(self, buffer: Any) -> int:
        def read() -> bytes:
            try:
                if self.file is None:
                    self.file = self.store.filesystem.open_input_file(self.entry.path)
                self.file.seek(min(self.place, self.entry.size))
                return self.file.read(len(buffer))
            except Exception:
                self.file = None
                raise

        content = self.store.tried(read, self.store.name_of(self.entry.path))
        buffer[: len(content)] = content
        self.place += len(content)
        return len(content)

    def close(self) -> None:
        if self.file is not None and not self.closed:
            self.file.close()
        super().close()


def open_filesystem(uri: str) -> tuple[Any, str]:
    """(pyarrow's filesystem, the path in it): its own where it knows the scheme, else fsspec's."""
    import pyarrow as pa
    import pyarrow.fs as stores

    try:
        return stores.FileSystem.from_uri(uri)
    except pa.ArrowInvalid as error:
        if "nrecognized filesystem" not in str(error):
            raise
    scheme = uri.partition("://")[0]
    try:
        from fsspec.core import url_to_fs

        filesystem, path = url_to_fs(uri)
        filesystem.invalidate_cache()  # of listings: files may have changed since
    except ImportError as error:
        raise ImportError(
            f"{named('source')}: {scheme}:// needs fsspec and its package for it: {error}; pip install 'onesfw[remote]'"
        ) from None
    return stores.PyFileSystem(stores.FSSpecHandler(filesystem)), path


def is_uri(path: str) -> bool:
    """Whether a path is an address."""
    return URI.match(path) is not None


def address_of(uri: str) -> str:
    """A URI without user, password and options."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def secrets_of(uri: str) -> list[str]:
    """What of a URI, or of the environment, no message may show."""
    user, _, _ = urlsplit(uri).netloc.rpartition("@")
    found = [user, *user.split(":"), urlsplit(uri).query, os.environ.get("AWS_SECRET_ACCESS_KEY", "")]
    return sorted({word for part in found for word in (part, unquote(part)) if len(word) > 2}, key=len, reverse=True)


def hidden(path: str) -> bool:
    """Whether a file in a folder is no data: what other programs leave begins with _ or a dot."""
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def translated(pattern: str) -> re.Pattern[str]:
    """A pattern with * inside a folder and ** across folders, as a regular expression."""
    words = {"**/": r"(?:.*/)?", "**": ".*", "*": "[^/]*"}
    parts = re.split(r"(\*\*/|\*\*|\*)", pattern)
    return re.compile("".join(words.get(part, re.escape(part)) for part in parts))
