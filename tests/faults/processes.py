"""What /proc says of a process: its processor time, threads and descriptors; limits that are taken away from it while it runs."""
import collections
import os
import pathlib
import re
import resource
import signal
import time

from conftest import wait_until

TICK = os.sysconf("SC_CLK_TCK")
LOOK = 0.4  # seconds over which a process shows whether it does anything


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def family(pid):
    """A process and all below it."""
    found = [pid]
    for known in found:
        try:
            for task in os.listdir(f"/proc/{known}/task"):
                found += map(int, pathlib.Path(f"/proc/{known}/task/{task}/children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def ticks(pid):
    """Processor time by thread, in ticks of the kernel."""
    used = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            fields = pathlib.Path(f"/proc/{pid}/task/{task}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        used[task] = int(fields[11]) + int(fields[12])
    return used


def wait_idle(pid):
    """Until no thread of it does more than wake now and then: at most a tenth of a processor over a moment."""
    def rests():
        before = ticks(pid)
        time.sleep(LOOK)
        after = ticks(pid)
        return all(after[task] - before.get(task, 0) <= LOOK * TICK / 10 for task in after)

    wait_until(rests, f"process {pid} is idle", 30)


def descriptors(pid):
    """How many descriptors of each kind: files by their path, the rest by what it is."""
    kinds = collections.Counter()
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            kinds[re.sub(r":\[\d+\]", "", os.readlink(f"/proc/{pid}/fd/{number}"))] += 1
        except FileNotFoundError:
            pass
    return kinds


def virtual_size(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()


class Limited:
    """A resource of a process and those below it, with less of it for a `with` statement; who ends meanwhile has ended."""

    def __init__(self, pid, which, size):
        self.pids, self.which, self.size, self.before = family(pid), which, size, {}

    def __enter__(self):
        for pid in self.pids:
            try:
                least = self.size(pid)
                self.before[pid] = resource.prlimit(pid, self.which)
                resource.prlimit(pid, self.which, (least, self.before[pid][1]))
            except (ProcessLookupError, FileNotFoundError):
                pass
        return self

    def __exit__(self, *_):
        for pid, limits in self.before.items():
            try:
                resource.prlimit(pid, self.which, limits)
            except ProcessLookupError:
                pass


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Stopped:
    """Processes that stand still for a `with` statement."""

    def __init__(self, pids):
        self.pids = pids

    def __enter__(self):
        send(self.pids, signal.SIGSTOP)
        return self

    def __exit__(self, *_):
        send(self.pids, signal.SIGCONT)
