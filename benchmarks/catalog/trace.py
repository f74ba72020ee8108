"""What happens inside a map: the spans of the trace, counted and summed up. Only our own server writes one."""
import re
import time

from catalog import requests
from catalog.measure import running, warm

LINE = re.compile(rb"^\[\w+ \w+ +\d+ (\d+):(\d+):(\d+\.\d+) \d+\] .*\[pid (\d+:tid \d+)\].* MOCKUP (BEGIN|END) ([^\s,]+)")
SPANS = ("mapcache_dimension_get_entries_for_value", "_mapcache_cache_sqlite_get", "mc_footprint_get")


def spans(text):
    """name -> (count, total microseconds) of a log, ends paired with the innermost begin of their thread and name."""
    open_spans, found = {}, {}
    for line in text.splitlines():
        match = LINE.match(line)
        if match is None:
            continue
        hours, minutes, seconds, thread, event, name = match.groups()
        now = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
        stack = open_spans.setdefault((thread, name), [])
        if event == b"BEGIN":
            stack.append(now)
        elif stack:
            count, total = found.get(name.decode(), (0, 0.0))
            found[name.decode()] = count + 1, total + (now - stack.pop()) * 1e6
    return found


def traced(bench, run, case):
    """Asks once and reads the lines that this wrote."""
    log = run.server.folder / "error.log"
    before = log.stat().st_size
    run.ask(case)
    time.sleep(0.3)  # the buffers of the workers follow the answer
    with open(log, "rb") as file:
        file.seek(before)
        return spans(file.read())


def count_spans(bench, files):
    for alias in ("catalog", "catalog-geo", "catalog-qbmgeo"):
        case = requests.wms_1024(alias, *bench.windows[0])
        with running("ours", files, processes=1, log_level="warn mapcache:debug") as run:
            for state in ("cold", "warm"):
                found = traced(bench, run, case)
                for name in SPANS:
                    count, total = found.get(name, (0, 0.0))
                    bench.figure("trace", f"{case.name}, {state}: {name}", "ours", "spans", count)
                    bench.figure("trace", f"{case.name}, {state}: time in {name}", "ours", "us", total)


def cost(bench, files):
    """The same repeated map with the trace on and off."""
    for level in ("warn", "warn mapcache:debug"):
        with running("ours", files, processes=1, log_level=level) as run:
            case = requests.wms_1024("catalog-geo", *bench.windows[0])
            case.name += ", trace " + ("on" if "debug" in level else "off")
            bench.add(warm("trace", case, [run], bench.rounds, bench.case_seconds))


def trace(bench):
    """Dimension queries, reads of product files and footprints of a map at zoom 2, cold and repeated; what tracing costs."""
    if "ours" not in bench.who:
        return
    files = bench.files()
    count_spans(bench, files)
    cost(bench, files)
