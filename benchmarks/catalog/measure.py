"""Asks servers in turn and counts time; every answer is checked for status, kind and size."""
import contextlib
import statistics
import time

from common.client import Client, image_size

from catalog import config
from catalog.data import warm as warm_files


SLOW = 1000  # milliseconds


class Wrong(Exception):
    """An answer that is not the picture that was asked for."""


def check(who, case, replies):
    for path, reply in zip(case.paths, replies):
        kind, size = image_size(reply.body)
        if reply.status != 200 or kind is None or size != (case.edge, case.edge):
            raise Wrong(f"{who} {path}: status {reply.status}, {reply.headers.get('content-type')}, {kind} {size}: {reply.body[:100]!r}")


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, round(share * (len(values) - 1)))]


def summary(milliseconds):
    return {"n": len(milliseconds), "p50": statistics.median(milliseconds), "p95": percentile(milliseconds, .95), "min": min(milliseconds)}


class Running:
    """A server that runs, with a client of its own."""

    def __init__(self, who, server):
        self.who, self.server = who, server
        self.client = Client(int(server.url.rsplit(":", 1)[1].split("/")[0]))

    def ask(self, case):
        """Milliseconds from the first byte sent to the last one received."""
        try:
            seconds, replies = self.client.fetch(case.paths)
        except OSError as problem:
            raise Wrong(f"{self.who} {case.paths[0]}: {problem!r}") from problem
        check(self.who, case, replies)
        return seconds * 1e3

    def child(self):
        """The one child that serves (of a server that was started with one)."""
        own = self.server.process.pid
        return next(pid for pid in self.server.pids() if pid != own)


@contextlib.contextmanager
def running(who, files, **options):
    with config.server(who, files, **options) as server:
        run = Running(who, server)
        try:
            yield run
        finally:
            run.client.close()


def alternate(items, turn):
    """The same items, in reverse order every other turn."""
    return items if turn % 2 == 0 else items[::-1]


class Row:
    """A line of the result: what was measured, in which state of the server's memory, and figures by server."""

    def __init__(self, part, case, state):
        self.part, self.name, self.state = part, case.name, state
        self.target, self.target_ratio, self.published = case.target, case.target_ratio, case.published
        self.samples, self.cpu, self.errors = {}, {}, {}

    def add(self, who, value):
        self.samples.setdefault(who, []).append(value)

    def record(self):
        servers = {who: {**summary(values), **({"cpu": self.cpu[who]} if who in self.cpu else {})} for who, values in self.samples.items()}
        return {"part": self.part, "case": self.name, "state": self.state, "unit": "ms", "target": self.target, "target_ratio": self.target_ratio,
                "published": self.published,
                "servers": {who: figures for who, figures in servers.items() if who not in self.errors}, "errors": self.errors}


def warm(part, case, servers, rounds, seconds):
    """The same request again and again, all servers in turn, after two that do not count (one, if it was slow). Stops adding rounds after `seconds`."""
    row = Row(part, case, "warm")
    for run in servers:
        try:
            if run.ask(case) < SLOW:
                run.ask(case)
        except Wrong as problem:
            row.errors[run.who] = str(problem)
    good = [run for run in servers if run.who not in row.errors]
    before = {run.who: run.server.cpu() for run in good}
    stop = time.monotonic() + seconds
    for turn in range(rounds):
        for run in alternate(good, turn):
            if run.who not in row.errors:
                try:
                    row.add(run.who, run.ask(case))
                except Wrong as problem:
                    row.errors[run.who] = str(problem)
        if time.monotonic() > stop:
            break
    for run in good:
        row.cpu[run.who] = (run.server.cpu() - before[run.who]) * 1e3 / max(1, len(row.samples.get(run.who, [])))
    return row.record()


def cold(part, cases, who_list, files, rounds, state, folder, prime=None):
    """Each case once in the life of a server. state "first": a fresh process for each case. state "open": one process for all of them (which
    must not share tiles), after `prime`, a request at another zoom that opens the files. All servers in turn, each on the files of `folder` in
    the page cache."""
    rows = [Row(part, case, state) for case in cases]
    if not cases:
        return []
    groups = [list(zip(rows, cases))] if prime else [[pair] for pair in zip(rows, cases)]
    for turn in range(rounds):
        for group in groups:
            for who in alternate(who_list, turn):
                if all(who in row.errors for row, _ in group):
                    continue
                warm_files(folder)
                with running(who, files, processes=1) as run:
                    ask_once(run, group, prime)
    return [row.record() for row in rows]


def ask_once(run, group, prime):
    try:
        if prime:
            run.ask(prime)
    except Wrong as problem:
        for row, _ in group:
            row.errors[run.who] = str(problem)
        return
    for row, case in group:
        run.client.open(len(case.paths))  # a first request pays for the map, not for TCP
        before = run.server.cpu()
        try:
            row.add(run.who, run.ask(case))
        except Wrong as problem:
            row.errors[run.who] = str(problem)
            continue
        spent, count = (run.server.cpu() - before) * 1e3, len(row.samples[run.who])
        row.cpu[run.who] = row.cpu.get(run.who, 0.0) + (spent - row.cpu.get(run.who, 0.0)) / count  # the mean so far
