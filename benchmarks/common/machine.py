"""What a result depends on besides the program: processor, memory, versions."""
import os
import pathlib
import platform
import re
import subprocess


def first_match(path, pattern):
    match = re.search(pattern, pathlib.Path(path).read_text(), re.M)
    return match.group(1).strip() if match else "unknown"


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def package(name):
    return output("dpkg-query", "-W", "-f", "${Version}", name) or "not installed"


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
        "ours": output("git", "-C", str(root), "describe", "--always", "--dirty") or "unknown",
        "SQLite": package("libsqlite3-0"),
    }
