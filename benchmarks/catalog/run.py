#!/usr/bin/python3
"""The case study of the catalogue: see benchmarks/README.md. Each run replaces the parts that it measures and keeps the others."""
import argparse
import contextlib
import datetime
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from catalog import config, data, latency, plots, report  # noqa: E402
from catalog.compare import compare  # noqa: E402
from catalog.measure import running, summary  # noqa: E402
from catalog.memory import memory  # noqa: E402
from catalog.requests import WINDOWS  # noqa: E402
from catalog.scale import scale  # noqa: E402
from catalog.threads import threads  # noqa: E402
from catalog.trace import trace  # noqa: E402
from common.machine import describe, processor_ticks  # noqa: E402
from common.report import RESULTS  # noqa: E402
from common.run import begin, need  # noqa: E402
from common.servers import ROOT, make_folder  # noqa: E402

PARTS = {"base": latency.base, "filtered": latency.filtered, "threaded": latency.threaded, "unfiltered": latency.unfiltered,
         "configurations": latency.configurations, "one": latency.one, "first": latency.first, "opened": latency.opened,
         "memory": memory, "scale": scale, "threads": threads, "trace": trace, "compare": compare}
OPEN_FILES = 8192  # what Debian's apache2ctl asks for


class Bench:
    """What the parts need: the data, the servers, the options, and where results go."""

    def __init__(self, options):
        self.who = options.servers.split(",")
        self.rounds, self.cold_rounds = options.rounds, options.cold_rounds
        self.case_seconds, self.load_seconds = options.case_seconds, options.load_seconds
        self.maps, self.cases = options.maps, options.cases
        self.work = pathlib.Path(options.work)
        self.results = pathlib.Path(options.results)
        folder = pathlib.Path(options.data) if options.data else self.work / f"catalog-{'full' if options.full else 'small'}"
        self.dataset = data.make(folder, options.full)
        self.windows = [w for w in WINDOWS if w[0] <= self.dataset.scale.hot_zoom]
        self.config_folder = make_folder("catalog-config")
        self.records, self.compared = [], []

    def wanted(self, cases):
        """Those of the cases that --cases names."""
        return [case for case in cases if self.cases in case.name]

    def files(self, map_format=""):
        """The case study's configurations, alias -> file."""
        folder = self.config_folder / (map_format or "default")
        folder.mkdir(exist_ok=True)
        return config.write_all(folder, self.dataset.folder, map_format)

    @contextlib.contextmanager
    def all_running(self, files):
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(running(who, files)) for who in self.who]

    def add(self, record):
        self.records.append(record)
        gain = report.ratio(record)
        figures = "  ".join(f"{who} {report.figures_of(record, who)}" for who in self.who if who in record["servers"] or who in record["errors"])
        print(f"  {record['case']:44s} {record['state']:6s} {figures}" + (f"  ratio {gain:.2f}" if gain else ""), file=sys.stderr, flush=True)
        for who, text in record["errors"].items():
            print(f"    ERROR {who}: {text}", file=sys.stderr, flush=True)

    def find(self, part, case, unit, target):
        """The record of a single figure, made at its first value."""
        for record in self.records:
            if (record["part"], record["case"], record["unit"]) == (part, case, unit):
                return record
        self.records.append({"part": part, "case": case, "state": "", "unit": unit, "target": target, "published": None, "servers": {}, "errors": {},
                             "samples": {}})
        return self.records[-1]

    def figure(self, part, case, who, unit, value, target=None):
        """Adds a value to a record that is not a time of a request, or one of a few."""
        record = self.find(part, case, unit, target)
        record["samples"].setdefault(who, []).append(value)
        record["servers"][who] = summary(record["samples"][who])
        print(f"  {case:60s} {who} {report.number(value)} {unit}", file=sys.stderr, flush=True)

    def failure(self, part, case, who, text):
        self.find(part, case, "", None)["errors"][who] = text
        print(f"  {case}: ERROR {who}: {text}", file=sys.stderr, flush=True)

    def pixels(self, entries):
        self.compared = entries
        different = [e for e in entries if not e["equal"]]
        print(f"  {len(entries)} maps compared, {len(different)} not equal", file=sys.stderr, flush=True)
        for entry in different:
            print(f"    {entry['name']}: status {entry['status']} {entry['figures']}", file=sys.stderr, flush=True)

    def run(self, name):
        """One part; what it found, as it is kept."""
        about = PARTS[name].__doc__.strip().replace("\n    ", " ")
        print(f"{name}: {about}", file=sys.stderr, flush=True)
        self.records, self.compared = [], []
        all_before, stolen_before = processor_ticks()
        PARTS[name](self)
        all_after, stolen_after = processor_ticks()
        for record in self.records:
            record.pop("samples", None)
        return {"about": about, "taken": datetime.datetime.now().isoformat(" ", "seconds"), "ours": describe(ROOT)["ours"],
                "stolen": (stolen_after - stolen_before) / max(1, all_after - all_before), "records": self.records, "pixels": self.compared}


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="401 products, 15,161 tiles, zoom 0 to 13 (otherwise 40 products, zoom 0 to 9)")
    parser.add_argument("--data", help="folder of data that exists, or where to build it (build/bench/catalog-small or -full)")
    parser.add_argument("--work", default=str(ROOT / "build" / "bench"), help="folder for what is built")
    parser.add_argument("--results", default=str(RESULTS / "catalog"))
    parser.add_argument("--only", default="", help=f"words, with commas between: names of parts, or what is in them; {', '.join(PARTS)}")
    parser.add_argument("--cases", default="", help="of the parts of repeated and cold requests, only the cases that hold this text; others keep their figures")
    parser.add_argument("--servers", default="MapCache,ours", help="which of them")
    parser.add_argument("--rounds", type=int, default=10, help="repetitions of a warm request")
    parser.add_argument("--cold-rounds", type=int, default=5, help="server starts for a cold one")
    parser.add_argument("--case-seconds", type=float, default=20, help="no more rounds of a case after this time")
    parser.add_argument("--load-seconds", type=int, default=5, help="of one throughput measurement")
    parser.add_argument("--maps", type=int, help="random maps whose pixels are compared: 60, with --full 240")
    parser.add_argument("--cores", help="processors for servers and client, such as 2,3")
    options = parser.parse_args()
    if options.maps is None:
        options.maps = 240 if options.full else 60
    return options


def replace(old, new, key):
    """The old entries, each replaced by the new one of the same key, then the new ones that are left."""
    fresh = {key(entry): entry for entry in new}
    return [fresh.pop(key(entry), entry) for entry in old] + list(fresh.values())


def merge(old, new):
    """A part of which only some cases were measured again."""
    return {**new, "records": replace(old["records"], new["records"], lambda record: (record["case"], record["state"], record["unit"])),
            "pixels": replace(old["pixels"], new["pixels"], lambda entry: entry["name"])}


def chosen(words):
    """The parts that the words mean: a whole name means that part, any other word all whose names hold it."""
    found = set()
    for word in words.split(","):
        found |= {word} if word in PARTS else {name for name in PARTS if word in name}
    if not found:
        sys.exit(f"no part is called {words}: there are {', '.join(PARTS)}")
    return [name for name in PARTS if name in found]


def main():
    options = parse()
    begin(options.cores, OPEN_FILES)
    for who in options.servers.split(","):
        if who not in config.MODULES:
            sys.exit(f"no server is called {who}: there are {', '.join(config.MODULES)}")
        need(config.MODULES[who])
    need("apache2", "wrk")
    bench = Bench(options)
    print(f"{bench.dataset.warm() / 1e6:.0f} MB read into the page cache", file=sys.stderr)
    result = report.load(bench.results / "catalog.json")
    for name in chosen(options.only):
        part = bench.run(name)
        summary = {key: value for key, value in bench.dataset.summary.items() if key != "items"}
        if result.get("dataset", summary) != summary:
            result["parts"] = {}  # figures of other data do not belong into one table
        if options.cases and name in result["parts"]:
            part = merge(result["parts"][name], part)
        result.update(machine=describe(ROOT), dataset=summary)
        result["parts"] = {key: part if key == name else result["parts"][key] for key in PARTS if key == name or key in result["parts"]}
        report.write(bench.results, result)
    plots.draw(result, bench.results)
    print(report.markdown(result))
    return 1 if any(record["errors"] for part in result["parts"].values() for record in part["records"]) else 0


if __name__ == "__main__":
    sys.exit(main())
