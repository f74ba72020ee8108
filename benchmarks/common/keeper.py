"""Ends and removes what a run has started and made, however the run ends: also when it is killed.

A second process of the run does it. It reads lines from a pipe: "group N" for a process group that has been started, "ended N" once
it has ended, "folder PATH". When the pipe closes, because the run is over or is no more, it ends the groups that are left, then
removes the folders. In the order in which a run does things, it tells the keeper before anybody can interrupt it.
"""
import atexit
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

PATIENCE = 15  # seconds for a group to end by itself
_process = None


def tell(*words):
    """The keeper, which is started with the first word."""
    global _process
    if _process is None:
        _process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True, text=True)
        atexit.register(finish, os.getpid())
    _process.stdin.write(" ".join(map(str, words)) + "\n")
    _process.stdin.flush()


def folder(path):
    """Will be removed at the end."""
    tell("folder", path)
    return pathlib.Path(path)


def start(command, **options):
    """A process group of its own, which the run does not leave behind."""
    process = subprocess.Popen(command, start_new_session=True, **options)
    tell("group", process.pid)
    return process


def end(process, seconds=10):
    """Ends such a group: its first process has ended afterwards."""
    signal_group(process.pid, signal.SIGTERM)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        signal_group(process.pid, signal.SIGKILL)
        process.wait()
    tell("ended", process.pid)


def finish(owner):
    """At the end of the run, not of a process that it has forked: nothing is left when this returns."""
    if os.getpid() == owner:
        _process.stdin.close()
        _process.wait()


def signal_group(number, what):
    try:
        os.killpg(number, what)
    except ProcessLookupError:
        return False
    return True


def end_groups(groups):
    for number in groups:
        signal_group(number, signal.SIGTERM)
    until = time.monotonic() + PATIENCE
    while any([signal_group(number, 0) for number in groups]) and time.monotonic() < until:
        time.sleep(.05)
    for number in groups:
        signal_group(number, signal.SIGKILL)


def remove(path):
    """Some of those that ended may still have been writing: then once more."""
    for _ in range(100):
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.exists(path):
            return
        time.sleep(.1)


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are meant for the run
    groups, folders = {}, []
    for line in sys.stdin:
        word, _, value = line.rstrip("\n").partition(" ")
        if word == "group":
            groups[int(value)] = True
        elif word == "ended":
            groups.pop(int(value), None)
        else:
            folders.append(value)
    end_groups(groups)
    for path in folders:
        remove(path)


if __name__ == "__main__":
    main()
