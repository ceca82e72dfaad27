"""Files that are written whole or not at all: what may be a target, and what killed writers leave."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

from onesfw import files

WRITER = """
import sys, time
from onesfw.files import whole_file
with whole_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_what_is_no_regular_file_is_refused_and_left_alone(kind, tmp_path):
    path = tmp_path / "node"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.close()
    else:
        try:  # a node of the test's own: a broken check must not cost the machine its /dev/null
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes device nodes")
    before = os.stat(path)
    for write in (files.check_target, lambda p: files.write_whole(p, b"content")):
        with pytest.raises(OSError, match=f"node is a {kind}, .*regular file"):
            write(path)
    link = tmp_path / "link to a node"
    link.symlink_to(path)
    with pytest.raises(OSError, match=f"node is a {kind}"):
        files.write_whole(link, b"content")
    assert os.stat(path).st_mode == before.st_mode
    assert names(tmp_path) == ["link to a node", "node"]


def test_links_are_followed(tmp_path):
    (tmp_path / "inner").mkdir()
    target, link = tmp_path / "inner" / "file", tmp_path / "link"
    link.symlink_to(target)
    for content in (b"new", b"again"):  # a link to nothing yet, and to a file
        files.write_whole(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert names(tmp_path / "inner") == ["file"]


@pytest.fixture
def killed(tmp_path):
    """A target whose writer was killed in the middle, beside an intact older version."""
    path = tmp_path / "model"
    path.write_bytes(b"old")
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == "writing\n"
    yield path, writer
    writer.kill()
    writer.wait()
    writer.stdout.close()


def test_what_a_killed_writer_left_is_removed_by_the_next(killed, tmp_path):
    path, writer = killed
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert path.read_bytes() == b"old"
    (left,) = [name for name in names(tmp_path) if name != "model"]
    age(tmp_path / left, 60)
    files.check_target(path)
    assert names(tmp_path) == ["model"]


def test_what_a_living_writer_holds_is_not_removed(killed, tmp_path):
    path, _ = killed
    (held,) = [name for name in names(tmp_path) if name != "model"]
    age(tmp_path / held, 3600)
    files.write_whole(path, b"new")
    assert names(tmp_path) == sorted([held, "model"])


def test_only_temporary_files_of_this_target_are_removed(tmp_path):
    path = tmp_path / "model"
    ours = files.temporary_beside(path)
    kept = [
        tmp_path / name
        for name in (".model.tmp", ".model.0123456789ab.tmp2", ".other.0123456789ab.tmp", ".model.x.tmp")
    ]
    for other in (ours, *kept):
        other.write_bytes(b"content")
        age(other, 60)
    pipe = files.temporary_beside(path)  # whoever made it: to open it would wait for a writer
    os.mkfifo(pipe)
    age(pipe, 60)
    kept.append(pipe)
    fresh = files.temporary_beside(path)
    fresh.write_bytes(b"a writer that has not locked it yet")
    files.write_whole(path, b"content")
    assert names(tmp_path) == sorted(["model", fresh.name, *(other.name for other in kept)])


def test_a_block_that_fails_leaves_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail():
        with files.whole_file(path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]
