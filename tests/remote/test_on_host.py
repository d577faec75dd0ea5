"""scripts/on-host and scripts/hebe-remote against an sshd on loopback."""

import json
import os
import pty
import shutil
import signal
import subprocess

import pytest
from conftest import BINARY, ROOT, eventually

SMOKE = ["run-aa", "--device", "sim", "--protocol-tier", "smoke-v1", "--pairs", "6", "--set", "n=65536"]


def alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_arguments_arrive_unchanged(host):
    awkward = ["", " ", "two  words", "it's", '"quoted"', "a\nb\n", "*", "$HOME", "`id`", "\\", "!x", "-n", "ü€", "~", "#", "a;b&c|d>e"]
    done = host.run("on-host", "there", "printf", "<%s>\\0", *awkward)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(f"<{word}>\0" for word in awkward)
    assert done.stderr == ""


@pytest.mark.parametrize("code", [0, 1, 2, 3, 5, 70, 130, 254, 255])
def test_the_exit_code_is_the_commands_own(host, code):
    done = host.run("on-host", "there", "sh", "-c", f"echo out; echo err >&2; exit {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, "out\n", "err\n")
    assert not list(host.folder.glob(".hebe-ended*"))


def test_standard_input_is_passed_through_to_its_end(host):
    text = "line\n" * 50_000
    done = host.run("on-host", "there", "sha256sum", input=text)
    assert done.stdout.split()[0] == subprocess.run(["sha256sum"], input=text, capture_output=True, text=True).stdout.split()[0]


def test_a_terminal_here_is_a_terminal_there_and_its_ctrl_c_is_the_commands(host):
    try:
        master, slave = pty.openpty()
    except OSError as error:
        pytest.skip(f"no terminal can be made here: {error}")
    # Short sleeps: a Ctrl-C that comes just before a sleep starts waits for its end, since a shell runs its traps between commands.
    command = "trap 'exit 7' INT; test -t 0 && echo ready; while :; do sleep 0.1; done"
    process = subprocess.Popen(host.command("on-host", "there", "sh", "-c", command),
                               stdin=slave, stdout=slave, stderr=slave, env=host.env, start_new_session=True)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(master, 1000)
    os.write(master, b"\x03")
    assert process.wait(60) == 7
    os.close(master), os.close(slave)


def test_deleted_sources_vanish_and_what_the_host_made_stays(host):
    for name in ("src/a.cpp", "src/gone/b.cpp", "new file.txt", "build/local"):
        (host.clone / name).parent.mkdir(parents=True, exist_ok=True)
        (host.clone / name).write_text(name)
    host.git("add", "src")
    assert host.run("on-host", "there", "true").returncode == 0
    assert (host.folder / "src/gone/b.cpp").exists() and (host.folder / "new file.txt").exists()
    assert not (host.folder / "build").exists(), "ignored files are not sent"
    made = ["build/release/hebe", "results/runs/x", ".venv/bin/python", "src/made-there.txt"]
    for name in made:
        (host.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (host.folder / name).write_text(name)
    shutil.rmtree(host.clone / "src/gone")
    (host.clone / "new file.txt").unlink()
    assert host.run("on-host", "there", "true").returncode == 0
    assert not (host.folder / "src/gone").exists() and not (host.folder / "new file.txt").exists()
    assert (host.folder / "src/a.cpp").exists()
    assert all((host.folder / name).read_text() == name for name in made)


def test_a_changed_file_is_new_there_even_when_its_time_is_old(host):
    source = host.clone / "a.txt"
    source.write_text("one")
    host.run("on-host", "there", "true")
    before = (host.folder / "a.txt").stat().st_mtime_ns
    source.write_text("two")
    os.utime(source, (1, 1))
    host.run("on-host", "there", "true")
    assert (host.folder / "a.txt").read_text() == "two"
    assert (host.folder / "a.txt").stat().st_mtime_ns > before


def test_the_host_knows_which_commit_it_builds(host):
    host.run("on-host", "there", "true")
    assert (host.folder / ".hebe-sent-commit").read_text().strip() == host.git("describe", "--always", "--dirty", "--abbrev=12").strip()
    assert "EXISTS \"${CMAKE_SOURCE_DIR}/.hebe-sent-commit\"" in (ROOT / "CMakeLists.txt").read_text()


def test_a_folder_that_was_not_sent_from_here_is_left_alone(host):
    host.folder.mkdir()
    (host.folder / "somebody's work").write_text("x")
    done = host.run("on-host", "there", "true")
    assert done.returncode == 3 and "left alone" in done.stderr
    assert [p.name for p in host.folder.iterdir()] == ["somebody's work"]


def test_the_folder_can_be_named(host):
    for name in ("deep er/hebe", str(host.home / "absolute"), "~/tilde", "-dash"):
        done = host.run("on-host", "there", "pwd", env={"HEBE_REMOTE_DIR": name})
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == str(host.home / name.removeprefix("~/"))
    for name in ("/", ".", "~", "../x"):
        assert host.run("on-host", "there", "pwd", env={"HEBE_REMOTE_DIR": name}).returncode == 2


@pytest.mark.parametrize("arguments", [[], ["there"], ["-oProxyCommand=touch x", "true"], ["user@-x", "true"], ["a b", "true"],
                                       ["there:x", "true"], ["../x", "true"]])
@pytest.mark.parametrize("script", ["on-host", "hebe-remote"])
def test_wrong_usage_is_refused_before_ssh(host, script, arguments):
    done = host.run(script, *arguments, env={"HEBE_SSH": "false"})
    assert done.returncode == 2 and "next:" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("script", ["on-host", "hebe-remote"])
def test_help_says_how(host, script):
    done = host.run(script, "--help")
    assert done.returncode == 0 and done.stdout.startswith(f"Usage: scripts/{script} HOST COMMAND")


def test_an_unreachable_host_is_3_and_says_so(host):
    host.stop()
    done = host.run("on-host", "there", "true")
    assert done.returncode == 3 and "could not be reached" in done.stderr and "nothing was run" in done.stderr


@pytest.mark.parametrize("missing", ["ssh", "rsync", "git"])
def test_a_missing_program_here_is_3_and_named(host, missing):
    done = host.run("on-host", "there", "true", env={"PATH": str(only(host, {"bash", "ssh", "rsync", "git"} - {missing}))})
    assert done.returncode == 3 and f"{missing} is missing on this machine" in done.stderr


def only(host, names):
    folder = host.base / ("path-" + "-".join(sorted(names)))
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(shutil.which(name))
    return folder


def running(host, *, start_new_session=False):
    """A command on the host that says its pid and stays."""
    process = subprocess.Popen(host.command("on-host", "there", "sh", "-c", "echo $$ > pid; exec sleep 300"), env=host.env, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=start_new_session)
    pid = host.folder / "pid"
    assert eventually(lambda: pid.exists() and pid.read_text().strip()), process.communicate()
    return process, int(pid.read_text())


def test_ctrl_c_ends_the_command_on_the_host_too(host):
    process, remote = running(host, start_new_session=True)
    assert alive(remote)
    os.killpg(process.pid, signal.SIGINT) # what a terminal does
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in err
    assert eventually(lambda: not alive(remote))


def test_sshd_killed_in_the_middle_is_3_and_the_command_is_stopped(host):
    process, remote = running(host)
    host.stop()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3 and "ended before the command did" in err
    assert eventually(lambda: not alive(remote))


def test_a_lost_connection_is_not_taken_for_the_commands_255(host):
    process, remote = running(host)
    for pid in host.sessions(): # the connection dies, the host stays reachable
        os.kill(pid, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3 and "ended before the command did" in err
    assert eventually(lambda: not alive(remote))


def test_a_run_is_sealed_in_the_hosts_data_root_and_nothing_appears_here(host):
    """The workstation holds bash, git, rsync and ssh and nothing else: no GPU, no Triton, no Python."""
    if not os.access(BINARY, os.X_OK):
        pytest.fail(f"{BINARY} is not built")
    program = host.base / "hebe" # the host's own Python and checkout
    program.write_text(f'#!/bin/sh\nexport HEBE_PYTHON="{os.environ.get("HEBE_PYTHON", "python3")}"\nexec "{BINARY}" "$@"\n')
    program.chmod(0o755)
    env = {name: value for name, value in host.env.items() if name not in ("HEBE_PYTHON", "PYTHONPATH")}
    (host.base / "local").mkdir()
    env |= {"PATH": str(only(host, {"bash", "git", "rsync", "ssh"})), "HEBE_REMOTE_PROGRAM": str(program)}
    before = sorted(p for p in host.clone.rglob("*") if ".git" not in p.parts)
    for root, wanted in ((None, host.home / ".local/share/hebe"), ("data/here", host.home / "data/here")):
        if root:
            env["HEBE_REMOTE_DATA_ROOT"] = root
        done = subprocess.run(host.command("hebe-remote", "there", *SMOKE, "--json"), env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        directory = json.loads(done.stdout)["directory"]
        assert directory.startswith(str(wanted)) and os.path.exists(directory + "/manifest.json")
    assert not list((host.base / "local").rglob("*"))
    assert sorted(p for p in host.clone.rglob("*") if ".git" not in p.parts) == before
    done = subprocess.run(host.command("hebe-remote", "there", "run-verify", "no-such-run"), env=env, capture_output=True, text=True)
    assert done.returncode == 2 and "not_found" in done.stderr


def test_hebe_remote_builds_when_the_sources_changed_and_only_then(host):
    for name, text in {"install": "echo installing; echo install >>calls",
                       "build": 'echo building; echo "build $*" >>calls; mkdir -p build/release; cp program build/release/hebe'}.items():
        (host.clone / "scripts" / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (host.clone / "scripts" / name).chmod(0o755)
    program = host.clone / "program"
    program.write_text('#!/bin/sh\necho "one $*"\n')
    program.chmod(0o755)
    done = host.run("hebe-remote", "there", "doctor", "--json")
    assert (done.returncode, done.stdout) == (0, "one doctor --json\n") and "building" in done.stderr
    assert (host.folder / "calls").read_text() == "install\nbuild release hebe\n"
    done = host.run("hebe-remote", "there", "doctor")
    assert (done.returncode, done.stdout, done.stderr) == (0, "one doctor\n", "")
    program.write_text('#!/bin/sh\necho "two $*"\n')
    assert host.run("hebe-remote", "there", "x").stdout == "two x\n"
    assert (host.folder / "calls").read_text().count("build") == 2
    (host.clone / "scripts/build").write_text("#!/bin/sh\nexit 1\n")
    for _ in range(2): # a build that failed is not taken for done
        assert host.run("hebe-remote", "there", "x").returncode == 1


def test_a_program_that_was_not_carried_there_is_3(host):
    done = host.run("hebe-remote", "there", "doctor", env={"HEBE_REMOTE_PROGRAM": "build/portable/hebe"})
    assert done.returncode == 3 and "build/portable/hebe" in done.stderr
