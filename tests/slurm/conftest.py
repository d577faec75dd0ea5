"""A Slurm cluster of one node, made on this machine for the tests: munged, slurmctld and slurmd on loopback,
with ports, keys and folders of their own. In: nothing; out: `cluster`. Invariant: no file of the system's own
Slurm or munge is read or written, and every process is gone afterwards, also those that tasks left."""

import ctypes
import os
import pathlib
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("HEBE_BINARY", str(ROOT / "build/release/hebe"))
SUBMIT = os.environ.get("HEBE_SLURM_SUBMIT", str(ROOT / "build/release/tests/hebe_slurm_submit"))
MAX_ARRAY_SIZE = 5 # small, so that a campaign needs several arrays
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"


def why_not():
    """Why no cluster can be made here, or None."""
    if not pathlib.Path("/sys/fs/cgroup").is_dir():
        return "slurmd needs /sys/fs/cgroup, which is not there (a chroot?)"
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel") if not shutil.which(name, path=PATH)]
    if missing:
        return f"needs {', '.join(missing)}: scripts/install --tests"
    if os.geteuid() != 0:
        return "needs root: slurmd starts tasks as their user"
    try:
        pwd.getpwnam("munge")
    except KeyError:
        return "needs the user munge, which the package munge makes"
    return None


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def eventually(fact, seconds=120):
    """Waits for a fact of another process; the limit only ends a test that has failed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = fact()
        if value:
            return value
        time.sleep(0.1)
    return None


def processes():
    """pid -> (parent, command line) of everything that runs."""
    out = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                out[int(entry.name)] = (parent, (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except (OSError, IndexError):
                pass
    return out


class Cluster:
    def __init__(self):
        # Short and readable by the user munge: a socket's path has 107 bytes, and pytest's folders are private.
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="hebe-slurm-"))
        self.base.chmod(0o755)
        self.daemons = {}
        for name in ("state", "spool", "munge", "work"):
            (self.base / name).mkdir()
        munge = pwd.getpwnam("munge")
        key = self.base / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        os.chown(key, munge.pw_uid, munge.pw_gid)
        os.chown(self.base / "munge", munge.pw_uid, munge.pw_gid)
        self.write_configuration()
        # Daemons and what they start carry this variable: that is how the last of them are found again.
        self.env = dict(os.environ, PATH=PATH, SLURM_CONF=str(self.base / "slurm.conf"), HEBE_TEST_CLUSTER=str(self.base))
        for name in list(self.env):
            if name.startswith(("SBATCH_", "SQUEUE_", "SLURM_")) and name != "SLURM_CONF":
                del self.env[name]

    def write_configuration(self):
        control, node = free_ports(2)
        devices = [self.base / f"gpu{i}" for i in range(2)] # Slurm wants a file for each GPU; any file will do
        for device in devices:
            device.touch()
        (self.base / "gres.conf").write_text(f"AutoDetect=off\nNodeName=node1 Name=gpu File={self.base}/gpu[0-1]\n")
        (self.base / "slurm.conf").write_text("\n".join([
            "ClusterName=hebe-tests", "SlurmctldHost=localhost(127.0.0.1)", f"SlurmctldPort={control}", f"SlurmdPort={node}",
            "SlurmUser=root", "SlurmdUser=root", "AuthType=auth/munge",
            # A requeued task waits as long as its credential lives: 120 s by default, and also for less than 5.
            f"AuthInfo=socket={self.base}/munge/socket,cred_expire=5",
            f"StateSaveLocation={self.base}/state", f"SlurmdSpoolDir={self.base}/spool",
            f"SlurmctldPidFile={self.base}/slurmctld.pid", f"SlurmdPidFile={self.base}/slurmd.pid",
            # No cgroups: a container rarely may write them.
            "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "JobAcctGatherType=jobacct_gather/none",
            "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core", "AccountingStorageType=accounting_storage/none",
            "GresTypes=gpu", "MpiDefault=none", "ReturnToService=2", "JobRequeue=1", f"MaxArraySize={MAX_ARRAY_SIZE}",
            "SlurmdTimeout=6", "SlurmctldTimeout=10", "KillWait=5", "MinJobAge=600", "BatchStartTimeout=10",
            "SchedulerParameters=sched_interval=1,bf_interval=1",
            f"NodeName=node1 NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 CPUs=2 Gres=gpu:2 State=UNKNOWN",
            "PartitionName=test Nodes=node1 Default=YES MaxTime=INFINITE State=UP", ""]))

    def spawn(self, name, argv, **options):
        with (self.base / f"{name}.log").open("a") as log:
            self.daemons[name] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env,
                                                  start_new_session=True, preexec_fn=end_with_parent, **options)

    def start(self):
        munge = pwd.getpwnam("munge")
        self.spawn("munged", ["munged", "-F", f"--key-file={self.base}/munge.key", f"--socket={self.base}/munge/socket", "--num-threads=2",
                              f"--pid-file={self.base}/munge/pid", f"--log-file={self.base}/munge/log", f"--seed-file={self.base}/munge/seed"],
                   user=munge.pw_uid, group=munge.pw_gid, extra_groups=[])
        self.expect("munged", lambda: (self.base / "munge/socket").exists())
        self.spawn("slurmctld", ["slurmctld", "-D", "-f", self.env["SLURM_CONF"]])
        self.expect("slurmctld", lambda: self.call("scontrol", "ping", check=False).returncode == 0)
        self.start_slurmd()

    def start_slurmd(self):
        self.spawn("slurmd", ["slurmd", "-D", "-N", "node1", "-f", self.env["SLURM_CONF"]])
        self.expect("slurmd", lambda: self.node_state().rstrip("*") in ("idle", "allocated", "mixed", "completing"))

    def expect(self, name, fact):
        if not eventually(lambda: fact() or self.daemons[name].poll() is not None, 60) or self.daemons[name].poll() is not None:
            logs = "\n".join(f"{log.name}: {log.read_text()[-2000:]}" for log in self.base.glob("*.log"))
            raise RuntimeError(f"{name} does not come up\n{logs}")

    def node_state(self):
        return self.call("sinfo", "--noheader", "--format=%T", check=False).stdout.strip()

    def call(self, *argv, check=True, env=None):
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, env=dict(self.env, **(env or {})), timeout=120, cwd=self.base / "work")
        assert not check or done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done

    def queued(self):
        return self.call("squeue", "--noheader").stdout

    def field(self, job, name):
        words = self.call("scontrol", "show", "job", job).stdout.split()
        return [word.split("=", 1)[1] for word in words if word.startswith(f"{name}=")]

    def ours(self):
        """Every process of this cluster and below: by its environment, and by its ancestors."""
        everything, found = processes(), set()
        for pid in everything:
            try:
                if f"HEBE_TEST_CLUSTER={self.base}".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes():
                    found.add(pid)
            except OSError:
                pass
        while more := {pid for pid, (parent, _) in everything.items() if parent in found} - found:
            found |= more
        return {pid: everything[pid][1] for pid in found - {os.getpid()}}

    def kill_slurmd(self):
        """SIGKILL to slurmd alone: its tasks live on under their slurmstepd."""
        self.daemons["slurmd"].kill()
        self.daemons["slurmd"].wait()

    def power_cut(self):
        """SIGKILL to slurmd and everything it started, and slurmd again once the node was taken for lost."""
        keep = {self.daemons[name].pid for name in ("munged", "slurmctld")}
        lost = [pid for pid in self.ours() if pid not in keep]
        for stop in (signal.SIGSTOP, signal.SIGKILL): # at once: a slurmstepd would report that its task was killed
            for pid in lost:
                kill(pid, stop)
        self.daemons["slurmd"].wait()
        assert eventually(lambda: self.node_state().startswith("down")), self.node_state()
        self.start_slurmd()

    def stop(self):
        self.call("scancel", "--user=root", check=False)
        for _ in range(50):
            remaining = self.ours()
            for pid in remaining:
                kill(pid)
            for daemon in self.daemons.values():
                daemon.poll()
            if not remaining:
                break
            time.sleep(0.1)
        shutil.rmtree(self.base, ignore_errors=True)


def end_with_parent():
    """Daemons do not outlive a pytest that was itself killed (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def kill(pid, how=signal.SIGKILL):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


@pytest.fixture(scope="session")
def cluster():
    reason = why_not()
    if reason:
        pytest.skip(f"no Slurm cluster can be made here: {reason}")
    made = Cluster()
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("told to stop")) # so that what follows still happens
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def work(cluster, tmp_path):
    """A folder for one test, below the cluster's; the queue is empty and the node idle when it begins."""
    folder = cluster.base / "work" / tmp_path.name
    folder.mkdir()
    yield folder
    cluster.call("scancel", "--user=root", check=False)
    if cluster.daemons["slurmd"].poll() is not None:
        cluster.start_slurmd()
    assert eventually(lambda: cluster.queued() == "" and cluster.node_state() == "idle"), cluster.queued() + cluster.node_state()
