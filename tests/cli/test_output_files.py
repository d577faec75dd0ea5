"""Files that a user names to be written: nothing but a regular file is ever put in another's place."""

import json
import os
import pathlib
import socket
import stat
import subprocess
import tempfile

import pytest

from conftest import BINARY
from test_calibrate import SMALL
from test_profile import write  # noqa: F401 (fixture)


def pipe(path):
    os.mkfifo(path)


def link(path):
    (path.parent / "behind").write_text("kept")
    path.symlink_to(path.parent / "behind")


def dangling(path):
    path.symlink_to(path.parent / "nowhere")


def device(path):
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 7))  # what /dev/full is, and a node of our own
    except PermissionError:
        pytest.skip("only root makes device nodes")


def sock(path):
    socket.socket(socket.AF_UNIX).bind(str(path))


WRITERS = {"merge": lambda a, out: ["profile", "merge", a, "-o", out], "expire": lambda a, out: ["profile", "expire", a, "-o", out],
           "calibrate": lambda a, out: [*SMALL, "--members", "triton", "--out", out]}


@pytest.mark.parametrize("make", [pipe, link, dangling, device, sock, pathlib.Path.mkdir])
@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_no_regular_file_is_not_replaced(hebe, write, tmp_path, writer, make):  # noqa: F811
    out = tmp_path / "o"
    make(out)
    before = os.lstat(out)
    code, said = hebe.json(*WRITERS[writer](str(write("a.json")), str(out)))
    assert code == 2 and said["refused"]["code"] == "already_exists" and said["refused"]["not_written"] == str(out), said
    after = os.lstat(out)
    assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)
    assert not (tmp_path / "behind").exists() or (tmp_path / "behind").read_text() == "kept"
    assert not list(tmp_path.glob(".o.tmp*"))
    if writer == "merge":  # a dry run says the same
        assert hebe(*WRITERS[writer](str(write("a.json")), str(out)), "--dry-run").returncode == 2


@pytest.mark.parametrize("writer", WRITERS)
def test_a_folder_that_may_not_be_written_is_no_permission_for_every_writer(hebe, write, writer):  # noqa: F811
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        os.chmod(folder, 0o755)
        source = pathlib.Path(folder, "a.json")
        source.write_text(write("a.json").read_text())
        locked = pathlib.Path(folder, "locked")
        locked.mkdir(mode=0o555)
        env = dict(os.environ, HEBE_DATA_ROOT=folder, TMPDIR=folder, HOME=folder)
        more = {"user": 65534} if os.geteuid() == 0 else {}
        done = subprocess.run([BINARY, *WRITERS[writer](str(source), str(locked / "o")), "--json"], capture_output=True, text=True, env=env,
                              cwd=folder, **more)
        assert done.returncode == 3, done.stderr
        said = json.loads(done.stdout)["refused"]
        assert said["code"] == "no_permission" and said["not_written"] == str(locked / "o"), said
        assert "%" not in done.stderr


def test_a_refusal_to_read_names_no_file_as_not_written_but_the_one_that_was_to_be(hebe, write, tmp_path):  # noqa: F811
    out = str(tmp_path / "out.json")
    sound = str(write("sound.json"))
    for change in ({"date": "2026-13-40T04:20:00Z"}, {"shape": "m<=3"}, {"verdict": "lower"}, {"energy_nj": {"value": 0, "low": 0, "high": 0}}):
        bad = str(write("bad.json", change))
        for arguments in (["show", bad], ["diff", sound, bad], ["merge", sound, bad]):
            code, said = hebe.json("profile", *arguments)
            assert code == 5 and said["refused"]["not_written"] == "" and bad in said["refused"]["where"], said
            assert "not written" not in hebe("profile", *arguments).stderr
        for arguments in (["merge", sound, bad], ["expire", bad]):
            code, said = hebe.json("profile", *arguments, "-o", out)
            assert code == 5 and said["refused"]["not_written"] == out and bad in said["refused"]["where"], said
    assert not os.path.exists(out)
