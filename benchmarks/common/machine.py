"""What a result depends on besides the program: processor, memory, versions."""
import os
import pathlib
import platform
import re
import subprocess

from peers import peer_version


def first_match(path, pattern):
    match = re.search(pattern, pathlib.Path(path).read_text(), re.M)
    return match.group(1).strip() if match else "unknown"


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def package(name):
    """Its version: of the one that is run, which is in build/peers or installed. Of one that was removed the system may know one still."""
    if unpacked := peer_version(name):
        return unpacked
    status, _, version = output("dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", name).partition(" ")
    return version if status == "installed" else "not installed"


def processor_ticks():
    """Of the processors that this process may use: all time, and what a hypervisor took."""
    mine = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    lines = [line.split() for line in pathlib.Path("/proc/stat").read_text().splitlines()]
    values = [[int(v) for v in line[1:9]] for line in lines if line[0] in mine]
    return sum(sum(v) for v in values), sum(v[7] for v in values)


def describe(root):
    """Plain words, in the order in which a reader asks."""
    memory = int(first_match("/proc/meminfo", r"^MemTotal:\s+(\d+)")) / 2 ** 20
    release = first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]+)')
    return {
        "processor": f"{first_match('/proc/cpuinfo', r'^model name.*: (.*)$')}, {os.cpu_count()} logical cores, of which the servers and the client "
                     f"have {len(os.sched_getaffinity(0))}",
        "memory": f"{memory:.0f} GB",
        "system": f"{release}, Linux {platform.release()}",
        "Apache": f"{package('apache2-bin')}, event MPM",
        "MapCache": f"{package('libapache2-mod-mapcache')} (Debian's libapache2-mod-mapcache)",
        "MapServer": f"{package('mapserver-bin')} (Debian's)",
        "PostgreSQL": f"{package('postgresql-15')}, PostGIS {package('postgresql-15-postgis-3')}",
        "ours": output("git", "-C", str(root), "describe", "--always", "--dirty") or "unknown",
        "SQLite": package("libsqlite3-0"),
    }
