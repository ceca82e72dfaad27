"""The ends of Parquet files: their columns and row groups.

What was read is kept within bounds, so that a file's end is not read again for each of its row groups, and a small file
elsewhere is asked for once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, TypeVar

from onesfw.data.blocks import Input
from onesfw.data.store import SeekableFile, StoreError

MOST_FOOTERS = 16 << 20  # bytes of footers in memory
IN_MEMORY = 10  # times its bytes in the file is what a footer takes in memory
MOST_BYTES = 32 << 20  # of small files elsewhere, between the reading of their footers and of their rows
SMALL = 1 << 20  # bytes of a file elsewhere that is fetched whole for its footer
AT_ONCE = 32 << 20  # bytes of a row group elsewhere that are fetched by one request
T = TypeVar("T")


class Kept(Generic[T]):
    """Things by their names, the last ones up to so many bytes; for several threads."""

    def __init__(self, room: int) -> None:
        self.room, self.used, self.lock = room, 0, Lock()
        self.things: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()

    def put(self, name: Hashable, thing: T, size: int) -> None:
        """Keep a thing, and let go of the oldest ones where there is no room for it."""
        with self.lock:
            self.used += size - self.things.pop(name, (thing, 0))[1]
            self.things[name] = (thing, size)
            while self.used > self.room:
                self.used -= self.things.popitem(last=False)[1][1]

    def get(self, name: Hashable, *, remove: bool = False) -> T | None:
        """A thing, if it is still there."""
        with self.lock:
            thing, size = self.things.pop(name, (None, 0))
            if thing is not None and not remove:
                self.things[name] = (thing, size)
            else:
                self.used -= size
            return thing

    def clear(self) -> None:
        """Let go of everything."""
        with self.lock:
            self.things.clear()
            self.used = 0


kept_footers: Kept[Any] = Kept(MOST_FOOTERS)
small_files: Kept[Any] = Kept(MOST_BYTES)


@dataclass(frozen=True)
class Footer:
    """What the end of a Parquet file says: its Arrow schema, the columns of its folders, and its row groups."""

    schema: Any
    constants: dict[str, int | str | None]
    groups: tuple[tuple[int, int], ...]
    """Rows and bytes before compression of each."""

    def columns(self) -> dict[str, str]:
        """The families of its columns, by their names."""
        own = {field.name: family(field.type) for field in self.schema}
        folders = {name: "numbers" if isinstance(v, int) else "words" for name, v in self.constants.items()}
        return {**folders, **own}


def read_footer(part: Input) -> Footer:
    """The footer of a file; a ValueError by its name where it is damaged."""
    about = metadata_of(part)
    schema = about.schema.to_arrow_schema()
    names = schema.names
    if len(set(names)) < len(names):
        raise ValueError(f"{part.name} has two columns {twice(names)!r}; rename one")
    found = [about.row_group(number) for number in range(about.num_row_groups)]
    constants = {name: part.constants[name] for name in part.constants if name in part.varying and name not in names}
    return Footer(schema, constants, tuple((group.num_rows, group.total_byte_size) for group in found))


def twice(names: list[str]) -> str | None:
    """The first name that stands there twice."""
    return next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None


def family(kind: Any) -> str:
    """What a column of an Arrow type is read as; columns of one family may differ in their widths."""
    import pyarrow as pa

    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers"
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "words"
    return "true and false" if pa.types.is_boolean(kind) else str(kind)


def metadata_of(part: Input) -> Any:
    """Arrow's reading of a file's footer, kept for a while where it spares another reading."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = at_hand(part)
    if about is None:
        try:
            with pq.ParquetFile(end_of(part)) as file:
                about = file.metadata
        except StoreError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise damaged(part, error) from error
        keep(part, about)
    return about


def at_hand(part: Input) -> Any:
    """A footer that was kept, or None."""
    return kept_footers.get((part.name, part.stamp()))


def keep(part: Input, about: Any) -> None:
    """Keep a footer, but for a file that comes at once, or from this machine, with all its rows: their footers are read
    again with the rows, and to keep many would scatter the memory that chunks of rows need."""
    if about.num_row_groups > 1 or (part.entry is not None and part.entry.size > SMALL):
        kept_footers.put((part.name, part.stamp()), about, IN_MEMORY * about.serialized_size)


def damaged(part: Input, error: Exception) -> ValueError:
    """The error for a file that is cut, or none."""
    reason = str(error).split(". ")[0].rstrip(".")
    return ValueError(f"{part.name} is not a Parquet file, or it is damaged: {reason}; write it again, or leave it out")


def end_of(part: Input) -> Any:
    """What Arrow reads a footer from: a small file elsewhere comes whole, and is kept for its rows."""
    if part.store is None or part.entry is None:
        return part.path
    size = part.entry.size
    if size > SMALL or small_files.used + size > small_files.room:
        return part.store.open(part.entry)
    import pyarrow as pa

    content = part.store.whole(part.entry)
    small_files.put((part.name, part.stamp()), content, size)
    return pa.BufferReader(content)


def group_of(part: Input, number: int) -> tuple[Any, Any]:
    """(what Arrow reads a row group from, the footer or None where it is there too); elsewhere by one request."""
    about = at_hand(part)
    if part.store is None or part.entry is None:
        return part.path, about
    whole = small_files.get((part.name, part.stamp()), remove=True)
    if whole is None and (about is not None or part.entry.size > SMALL):
        about = about or metadata_of(part)
    if whole is None and (about is None or (about.num_row_groups == 1 and part.entry.size <= AT_ONCE)):
        whole = part.store.whole(part.entry)
    if whole is not None:
        import pyarrow as pa

        return pa.BufferReader(whole), about
    begin, end = extent(about.row_group(number))
    if not 0 <= begin < end <= part.entry.size or end - begin > AT_ONCE:
        return part.store.open(part.entry), about
    return Window(part.store.some(part.entry, begin, end), begin, part.entry.size), about


def extent(group: Any) -> tuple[int, int]:
    """The bytes of a file from the first to the last of a row group."""
    begins, ends = [], []
    for place in range(group.num_columns):
        column = group.column(place)
        first = column.data_page_offset
        if column.has_dictionary_page and column.dictionary_page_offset:
            first = min(first, column.dictionary_page_offset)
        begins.append(first)
        ends.append(first + column.total_compressed_size)
    return (min(begins), max(ends)) if begins else (0, 0)


class Window(SeekableFile):
    """A file of which some bytes are at hand, from `begin` on."""

    def __init__(self, content: Any, begin: int, size: int) -> None:
        super().__init__(size)
        self.content, self.begin = memoryview(content), begin

    def readinto(self, buffer: Any) -> int:
        first = self.place - self.begin
        if first < 0 or self.place + min(len(buffer), self.size - self.place) > self.begin + len(self.content):
            raise OSError("bytes outside its row group")
        some = self.content[first : first + len(buffer)]
        buffer[: len(some)] = some
        self.place += len(some)
        return len(some)
