"""What a child process holds after a sequence of loads: memory and open files."""
import os

from catalog import requests
from catalog.measure import Wrong, running
from catalog.requests import Case
from common.servers import pss_bytes

MOST_MEGABYTES, MOST_FILES = 128, 500


def stages(bench):
    """Name of a load, how often it is repeated, its requests."""
    deepest = bench.dataset.scale.base_zoom
    edge = 1 << deepest
    tiles = [Case("tiles", [requests.wmts("base-sqlite", "base", deepest, (i * 16 + j) % edge, i % edge) for j in range(16)], 256) for i in range(16)]
    windows = bench.windows
    return [("start", 0, []), ("3,840 basemap tiles, 16 at once", 15, tiles),
            (f"2 x {len(windows)} filtered maps", 2, list(requests.filtered_cases("catalog-geo", windows, "warm"))),
            ("2 unfiltered maps", 2, [requests.wms_1024("catalog", *windows[0])]),
            ("2 x 16 unfiltered tiles at once", 2, [requests.wmts_16("catalog", *windows[0])])]


def load(run, count, cases):
    for _ in range(count):
        for case in cases:
            run.ask(case)


def sequence(bench, run):
    last = stages(bench)[-1][0]
    for stage, count, cases in stages(bench):
        load(run, count, cases)
        child = run.child()
        size, files = pss_bytes([child])[child] / 1e6, len(os.listdir(f"/proc/{child}/fd"))
        bench.figure("memory", f"PSS of the child, after {stage}", run.who, "MB", size, MOST_MEGABYTES if stage == last else None)
        bench.figure("memory", f"open files, after {stage}", run.who, "files", files, MOST_FILES if stage == last else None)


def memory(bench):
    """One child under the sequence of loads of the published baseline: its memory (PSS) and open files after each."""
    files = bench.files()
    for who in bench.who:
        with running(who, files, processes=1) as run:
            try:
                sequence(bench, run)
            except Wrong as problem:
                bench.failure("memory", "PSS of the child, after 2 x 16 unfiltered tiles at once", who, str(problem))
