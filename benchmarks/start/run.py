#!/usr/bin/python3
"""The start of a thousand tilesets in a hundred thousand lines: `mapcache check`, mapcache.fcgi's load and reload, and capabilities of it. See benchmarks/README.md."""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common.machine import describe  # noqa: E402
from common.report import Report, table  # noqa: E402
from common.run import begin, need  # noqa: E402
from common.servers import BUILD, ROOT, make_folder  # noqa: E402
from fastcgi import END, Client  # noqa: E402
from start.config import configuration  # noqa: E402

LONGEST = 60  # seconds
END_SIZE, ROOM = 16, bytearray(1 << 20)  # the record that ends an answer, and bytes that are read at a time
DOCUMENTS = {
    "WMS 1.3.0": (b"/", b"SERVICE=WMS&VERSION=1.3.0&REQUEST=GetCapabilities"),
    "WMS 1.1.1": (b"/", b"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetCapabilities"),
    "WMTS": (b"/wmts/1.0.0/WMTSCapabilities.xml", b""),
    "TMS": (b"/tms/1.0.0", b""),
}


def processor(pid):
    """Seconds of processor time that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(client, path, query):
    """Seconds until the whole answer is here, and its bytes: as they come, not taken apart, which costs more in Python than the server needs."""
    began, size, last = time.perf_counter(), 0, b""
    client.send(path, query)
    while not (len(last) >= END_SIZE and last[-END_SIZE:-END_SIZE + 2] == bytes([1, END])):
        count = client.socket.recv_into(ROOM)
        if count == 0:
            sys.exit(f"{path!r}?{query!r}: no answer")
        last, size = (last + bytes(ROOM[max(0, count - END_SIZE):count]))[-END_SIZE:], size + count
    return time.perf_counter() - began, size


def connect(process, address):
    began = time.monotonic()
    while process.poll() is None and time.monotonic() < began + LONGEST:
        try:
            return Client(address)
        except OSError:
            time.sleep(.001)
    sys.exit("mapcache.fcgi does not listen")


def measure_check(config):
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([BUILD / "bin/mapcache", "check", config], check=True, stdout=subprocess.DEVNULL)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"s": took, "processor_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def measure_reload(process, config, client, log):
    """Seconds from the signal until the log says that the new configuration is in use."""
    before, lines, began = processor(process.pid), log.read_text().count("reloaded config file"), time.perf_counter()
    os.utime(config)
    process.send_signal(1)
    while log.read_text().count("reloaded config file") == lines:
        if time.perf_counter() > began + LONGEST:
            sys.exit("mapcache.fcgi does not read its configuration again")
        time.sleep(.001)
    return {"s": time.perf_counter() - began, "processor_s": processor(process.pid) - before}


def measure_fastcgi(report, folder, config, repeats):
    address, log = str(folder / "socket"), folder / "log"
    began = time.perf_counter()
    with open(log, "wb") as out:
        process = subprocess.Popen([BUILD / "bin/mapcache.fcgi", "--listen", address], stderr=out, env={**os.environ, "MAPCACHE_CONFIG_FILE": str(config)})
    try:
        client = connect(process, address)
        ask(client, b"/tms/1.0.0/", b"")  # the first answer needs the whole configuration
        report.add("load", "mapcache.fcgi, first answer", {"s": time.perf_counter() - began, "processor_s": processor(process.pid)})
        for name, (path, query) in DOCUMENTS.items():
            first, size = ask(client, path, query)
            later = [ask(client, path, query)[0] for _ in range(repeats)]
            report.add("capabilities", name, {"first_ms": first * 1e3, "later_ms": sorted(later)[len(later) // 2] * 1e3, "MB": size / 1e6})
        report.add("reload", "mapcache.fcgi", measure_reload(process, config, client, log))
        client.close()
    finally:
        process.terminate()
        process.wait(LONGEST)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tilesets", type=int, default=1000)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=20, help="requests for each document after the first one")
    options = parser.parse_args()
    begin()
    need(BUILD / "bin/mapcache", BUILD / "bin/mapcache.fcgi")
    folder, report = make_folder("bench-start"), Report("start")
    config = folder / "mapcache.xml"
    config.write_text(configuration(folder / "tiles", options.tilesets, options.lines))
    for _ in range(options.rounds):
        report.add("check", "mapcache check", measure_check(config))
        measure_fastcgi(report, folder, config, options.repeats)
    print("\n".join(f"{word}: {value}" for word, value in describe(ROOT).items()))
    report.write()
    rows = report.medians()
    print(table(["", "", "seconds", "first ms", "later ms"], [[row["case"], row["variant"], *(f"{row[what]:.4g}" if what in row else "" for what in ("s", "first_ms", "later_ms"))] for row in rows]))


if __name__ == "__main__":
    main()
