#!/usr/bin/python3
"""The load test of CGI against FastCGI, ours and MapServer's: see benchmarks/README.md. Each run replaces what it measures."""
import argparse
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import frontends  # noqa: E402
from common.report import RESULTS  # noqa: E402
from common.run import begin, earlier, need, publish, some  # noqa: E402
from common.servers import ROOT, make_folder, remove  # noqa: E402
from load import config, data, measure, plots, report  # noqa: E402


SERVERS = ("ours module", "ours FastCGI", "ours CGI", "MapServer mod_fcgid", "MapServer FastCGI", "MapServer CGI")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modes", default="published,compressed,unpaced", help="of them: 3000 requests over 100 s, over 20 s, as fast as it goes")
    parser.add_argument("--only", default="", help="words, with commas between: those of the servers whose name holds one, such as module,fastcgi")
    parser.add_argument("--requests", type=int, default=measure.PUBLISHED_REQUESTS, help="of all users; fewer of them at the same rate are a shorter test")
    parser.add_argument("--rounds", type=int, default=1, help="the median one by its processor time is kept")
    parser.add_argument("--data", default=str(ROOT / "build" / "bench" / "load"), help="folder of what is fetched or made once")
    parser.add_argument("--results", default=str(RESULTS / "load"))
    parser.add_argument("--cores", help="processors for servers and client, such as 2,3")
    options = parser.parse_args()
    options.modes = options.modes.split(",")
    for mode in options.modes:
        if mode not in measure.MODES:
            parser.error(f"no mode is called {mode}: there are {', '.join(measure.MODES)}")
    options.requests = max(measure.USERS, options.requests // measure.USERS * measure.USERS)
    return options


def servers(folder, data_folder):
    """Name -> how to make it, and the path of a map."""
    own = config.write_ours(folder, data_folder)
    config.write_map_file(folder, data_folder)
    theirs = config.mapserver_path(folder)
    return dict(zip(SERVERS, [
        (lambda: frontends.module("load", own), config.ours_path),
        (lambda: frontends.fastcgi("load", own), config.ours_path),
        (lambda: frontends.cgi("load", own), config.ours_path),
        (lambda: frontends.mapserver_fcgid("load", folder, measure.FCGID_PROCESSES), theirs),
        (lambda: frontends.mapserver_fastcgi("load", folder, 2), theirs),
        (lambda: frontends.mapserver_cgi("load", folder), theirs),
    ]))


def tell(mode, who, found):
    print(f"  {mode:11s} {who:20s} {found['per_minute']:8.0f} maps/min  mean {found['mean']:7.1f}  p50 {found['p50']:7.1f}  p95 {found['p95']:7.1f}  "
          f"p99 {found['p99']:7.1f}  worst {found['worst']:8.1f} ms  cpu {found['cpu']:6.2f} ms  {found['busy']:5.1f} %  {found['memory']:6.0f} MB"
          + (f"  {found['errors']} ERRORS" if found["errors"] else ""), file=sys.stderr, flush=True)


def measure_all(options, found, boxes):
    """The servers in turn, each started for its run; the other way round every other round."""
    rounds = {}
    for mode in options.modes:
        for turn in range(options.rounds):
            for who, (make, path) in list(found.items())[::1 if turn % 2 == 0 else -1]:
                with make() as server:
                    result = measure.run(server, [path(box) for box in boxes], mode, options.requests)
                remove(server)
                tell(mode, who, result)
                rounds.setdefault((mode, who), []).append(result)
    return [{"mode": mode, "who": who, "cores": len(os.sched_getaffinity(0)), **sorted(results, key=lambda r: r["cpu"])[len(results) // 2]}
            for (mode, who), results in sorted(rounds.items(), key=lambda item: (list(measure.MODES).index(item[0][0]), SERVERS.index(item[0][1])))]


def main():
    options = parse()
    begin(options.cores, files=8192)
    names = some(SERVERS, options.only)
    need("apache2", "nginx", "shptree", *[frontends.MAPSERVER for name in names if name.startswith("MapServer")][:1])
    data_folder = data.make(options.data)
    boxes = list(data.boxes(data_folder, options.requests))
    folder = make_folder("bench-load")
    found = servers(folder, data_folder)
    wanted = {who: found[who] for who in names}
    records = measure_all(options, wanted, boxes)
    old = earlier(options.results, "load", {"records": []})["records"]
    fresh = {(r["mode"], r["who"]): r for r in records}
    kept = [r for r in old if (r["mode"], r["who"]) not in fresh]
    result = {"records": sorted(kept + records, key=lambda r: (list(measure.MODES).index(r["mode"]), SERVERS.index(r["who"])))}
    publish(options.results, "load", result, report.markdown, plots.draw)
    return 1 if any(r["errors"] for r in records) else 0


if __name__ == "__main__":
    sys.exit(main())
