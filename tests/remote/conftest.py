"""Another host on this machine: an sshd of our own on loopback, whose users land in a temporary home.
In: nothing; out: a host named `there` for HEBE_SSH="ssh -F …". Invariant: no file of the user's own ssh
set-up is read or written, and sshd is gone afterwards."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("HEBE_BINARY", str(ROOT / "build/release/hebe"))


def of_process(name):
    """A file of /proc; empty where the process has ended meanwhile."""
    try:
        return pathlib.Path("/proc", name).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Host:
    """sshd, its home, and the scripts run against it from a small clone of their own."""

    def __init__(self, base: pathlib.Path):
        self.base, self.home, self.clone = base, base / "home of the host", base / "clone"
        self.folder = self.home / "hebe"
        self.home.mkdir()
        self.port = free_port()
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", base / key], check=True)
        (base / "authorized_keys").write_text((base / "user_key.pub").read_text())
        # A temporary home cannot be said to sshd itself: every command starts through this one.
        login = base / "login"
        login.write_text(f'#!/bin/sh\nexport HOME="{self.home}"\nunset HEBE_DATA_ROOT XDG_DATA_HOME\ncd "$HOME"\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')
        login.chmod(0o755)
        (base / "sshd_config").write_text("\n".join([
            f"Port {self.port}", "ListenAddress 127.0.0.1", f"HostKey {base}/host_key", f"AuthorizedKeysFile {base}/authorized_keys",
            f"PidFile {base}/sshd.pid", "UsePAM no", "StrictModes no", "PermitRootLogin yes", "PasswordAuthentication no",
            f"ForceCommand {login}", ""]))
        (base / "ssh_config").write_text("\n".join([
            "Host there", "HostName 127.0.0.1", f"Port {self.port}", f"IdentityFile {base}/user_key", "IdentitiesOnly yes",
            "StrictHostKeyChecking accept-new", f"UserKnownHostsFile {base}/known_hosts", "BatchMode yes", "LogLevel ERROR", ""]))
        self.env = dict(os.environ, HEBE_SSH=f"ssh -F {base}/ssh_config", HOME=str(base / "local"))
        for name in list(self.env):
            if name.startswith("HEBE_REMOTE") or name in ("HEBE_DATA_ROOT", "XDG_DATA_HOME"):
                del self.env[name]
        self.make_clone()
        self.start()

    def make_clone(self):
        (self.clone / "scripts").mkdir(parents=True)
        for name in ("on-host", "hebe-remote", "hebe-here"):
            shutil.copy(ROOT / "scripts" / name, self.clone / "scripts" / name)
        (self.clone / ".gitignore").write_text("/build/\n/results/\n/.hebe-*\n")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "clone")

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.clone, *arguments], check=True, capture_output=True, text=True).stdout

    def start(self):
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
        self.sshd = subprocess.Popen([sshd, "-D", "-e", "-f", self.base / "sshd_config"], stdin=subprocess.DEVNULL,
                                     stderr=(self.base / "sshd.log").open("a"))
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert self.sshd.poll() is None, (self.base / "sshd.log").read_text()
                time.sleep(0.05)
        raise AssertionError("sshd does not answer")

    def sessions(self):
        """The sshd processes that serve connections, oldest first."""
        found, queue = [], [self.sshd.pid]
        while queue:
            for pid in map(int, of_process(f"{queue[0]}/task/{queue.pop(0)}/children").split()):
                if of_process(f"{pid}/comm").strip().startswith("sshd"):
                    found.append(pid)
                    queue.append(pid)
        return found

    def stop(self):
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        self.sshd.kill()
        self.sshd.wait()

    def command(self, script, *arguments):
        return [str(self.clone / "scripts" / script), *map(str, arguments)]

    def run(self, script, *arguments, env=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
        if "input" in options:
            del options["stdin"]
        return subprocess.run(self.command(script, *arguments), capture_output=True, text=True, timeout=120,
                              env=dict(self.env, **(env or {})), **options)


@pytest.fixture(scope="session")
def needs():
    path = f"{os.environ['PATH']}:/usr/sbin"
    missing = [name for name in ("sshd", "ssh", "ssh-keygen", "rsync", "git") if not shutil.which(name, path=path)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: scripts/install --tests")


@pytest.fixture
def host(needs, tmp_path):
    made = Host(tmp_path)
    yield made
    made.stop()


def eventually(fact, seconds=60):
    """Waits for a fact of another process; the limit only ends a test that has failed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if fact():
            return True
        time.sleep(0.1)
    return False
