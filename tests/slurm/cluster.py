"""A Slurm of one node on this machine: its own folder, ports, key and socket, reached over loopback only.

It ends the processes that it has started and no others, so that it lives beside a Slurm that is there already. Where
this process is killed, the kernel ends them: the daemons, and with the node all of its jobs.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd")
PROGRAMS = (*DAEMONS, "sbatch", "srun", "squeue", "scontrol", "scancel", "sinfo", "setpriv", "unshare")
ADMINISTRATORS = "/usr/sbin:/usr/local/sbin:/sbin"
PARTITION, WITH_GPUS = "small", "gpus"
URGENT = "urgent"  # its jobs push those of the other partitions off the node
CPUS, MEMORY_MB = 8, 16_000
GPUS = ("/dev/null", "/dev/zero")  # Slurm wants devices, and looks at nothing but their names
ENDED_WITH_US = ("setpriv", "--pdeathsig", "KILL")
# Processes of their own number space, which the kernel ends with the first of them.
A_SPACE_OF_ITS_OWN = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")

CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=15
CredType=cred/munge
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,bf_resolution=1,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill,UsePss
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MinJobAge=3600
KillWait=10
ReturnToService=2
SlurmdTimeout=10
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} Gres=gpu:{gpus} State=UNKNOWN
PartitionName={partition} Nodes=node Default=YES MaxTime=INFINITE PriorityTier=1 State=UP
PartitionName={with_gpus} Nodes=node MaxTime=INFINITE PriorityTier=1 State=UP
PartitionName={urgent} Nodes=node MaxTime=INFINITE PriorityTier=2 State=UP
"""


def why_not() -> str | None:
    """Why no Slurm can be started here; None where it can."""
    missing = [program for program in PROGRAMS if find(program) is None]
    if missing:
        return f"Slurm is not installed: no {', '.join(missing)} (Debian has them in slurm-wlm and munge)"
    return None if os.geteuid() == 0 else "Slurm's node daemon has to be started by root"


def find(program: str) -> str | None:
    return shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), ADMINISTRATORS]))


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class Cluster:
    """munged, slurmctld and slurmd in the foreground of this process's children, until the block ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": path}
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Cluster":
        with ExitStack() as undone:
            undone.callback(self.stop)
            self._configure()
            # --force: the folder above may be closed to other users, whom nothing here is for.
            self._start("munged", "--foreground", "--force", *self._of_munge())
            wait_for((self.folder / "munge.socket").exists, "munged's socket", 10)
            self._start("slurmctld", "-D", "-i")
            self.start_node()
            undone.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def run(self, *command: str) -> str:
        """What one of Slurm's programs says."""
        ended = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True, timeout=120)
        return ended.stdout

    def start_node(self) -> None:
        """Start the node's daemon, and wait until the node takes jobs."""
        self._start("slurmd", "-D", "-N", "node", within=A_SPACE_OF_ITS_OWN if may_have_a_space() else ())
        wait_for(self.is_up, f"the node; see {self.folder}/slurmd.log", 60)

    def kill_node(self) -> None:
        """Kill the node's daemon and jobs; after SlurmdTimeout Slurm takes the node for lost, and queues them again."""
        self._end("slurmd", signal.SIGKILL)

    def is_up(self) -> bool:
        try:
            return bool({"idle", "mix", "alloc"}.intersection(self.run("sinfo", "--noheader", "--format=%t").split()))
        except subprocess.CalledProcessError:
            return False

    def stop(self) -> None:
        """Cancel what is still running, then end the daemons, the last one started first."""
        if len(self.daemons) == len(DAEMONS):
            self.run("scancel", "--user", "root")
            wait_for(lambda: not self.run("squeue", "--noheader"), "the end of the jobs", 30)
        for name in reversed(list(self.daemons)):
            # The first process of a space takes no signal from outside but this one.
            self._end(name, signal.SIGKILL if name == "slurmd" else signal.SIGTERM)

    def _configure(self) -> None:
        for name in ("state", "spool", "bin"):
            (self.folder / name).mkdir()
        settings = {"folder": self.folder, "host": socket.gethostname().partition(".")[0]}
        sizes = {"ports": (free_port(), free_port()), "cpus": CPUS, "memory": MEMORY_MB, "gpus": len(GPUS)}
        names = {"partition": PARTITION, "with_gpus": WITH_GPUS, "urgent": URGENT}
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(**settings, **sizes, **names))
        (self.folder / "gres.conf").write_text("AutoDetect=off\n" + "".join(f"Name=gpu File={gpu}\n" for gpu in GPUS))
        # The executor drops SLURM_CONF where it calls srun within a job; elsewhere srun finds its settings in /etc.
        srun = self.folder / "bin/srun"
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={self.folder}/slurm.conf exec {find("srun")} "$@"\n')
        srun.chmod(0o755)
        key = self.folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(1024))

    def _of_munge(self) -> list[str]:
        files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        return [f"--{option}={self.folder}/munge.{suffix}" for option, suffix in files.items()]

    def _start(self, name: str, *arguments: str, within: tuple[str, ...] = ()) -> None:
        with (self.folder / f"{name}.out").open("a") as output:
            command = [*ENDED_WITH_US, *within, find(name) or name, *arguments]
            self.daemons[name] = subprocess.Popen(command, env=self.environment, stdout=output, stderr=output)

    def _end(self, name: str, number: signal.Signals) -> None:
        daemon = self.daemons.pop(name)
        daemon.send_signal(number)
        try:
            daemon.wait(15)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def may_have_a_space() -> bool:
    """Whether this process may open a space of processes; in a container it often may not."""
    return subprocess.run([*A_SPACE_OF_ITS_OWN, "true"], capture_output=True, check=False).returncode == 0


def wait_for(condition: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait until the condition holds, so long at most."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"waited {seconds:.0f} seconds for {what}")
        time.sleep(0.2)
