"""What the programs of all benchmarks do at their beginning and end."""
import datetime
import json
import os
import pathlib
import resource
import signal
import sys

from common.machine import describe
from common.servers import ROOT


def begin(cores=None, files=None):
    """Ends what was started when it is ended itself; on some processors (a text such as 2,3); with at least so many open files, if they are to be had."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    if cores:
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    if files:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = max(soft, files)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard < 0 else min(wanted, hard), hard))


def earlier(folder, name, otherwise=None):
    """The result of the last run, or what is given."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else otherwise or {}


def publish(folder, name, result, markdown, draw, **programs):
    """Stores a result with where and when it was taken, its tables and plots, and prints the tables. programs: versions beside those that are always told."""
    folder = pathlib.Path(folder)
    result.update(machine={**describe(ROOT), **programs}, taken=datetime.datetime.now().isoformat(" ", "seconds"))
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    text = markdown(result)
    (folder / f"{name}.md").write_text(text)
    draw(result, folder)
    print(text)
