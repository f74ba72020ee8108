"""One run of the load test against one server: the users, and meanwhile what the server takes of processor and memory."""
import os
import threading
import time

from common import frontends, load
from common.servers import cpu_seconds, pss_bytes

USERS = 100
FCGID_PROCESSES = 16  # at most; behind nginx two are enough for two processors
TIMEOUT = 60          # seconds after which a request counts as failed
CPU_EVERY, MEMORY_EVERY = .5, 2.0  # seconds

# Seconds over which the published number of requests is spread; 0: as fast as it goes.
MODES = {"published": 100.0, "compressed": 20.0, "unpaced": 0.0}
PUBLISHED_REQUESTS = 3000


class Sampler(threading.Thread):
    """Looks at a server now and then: (seconds, processor seconds so far, processes), and (seconds, bytes of memory that are its own or its share)."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.stop, self.load, self.memory = server, threading.Event(), [], []
        self.began = time.monotonic()

    def look(self, memory=False):
        pids = self.server.pids()
        self.load.append((time.monotonic() - self.began, cpu_seconds(pids), len(pids)))
        if memory or not self.memory or self.load[-1][0] - self.memory[-1][0] >= MEMORY_EVERY:
            self.memory.append((self.load[-1][0], sum(pss_bytes(pids).values())))

    def run(self):
        while not self.stop.wait(CPU_EVERY):
            self.look()

    def __enter__(self):
        self.look()
        self.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.join()
        self.look(memory=True)


def pace(mode, requests):
    """(ramp, interval) in seconds: the users begin over the first tenth; so many requests keep the rate of the published test."""
    seconds = MODES[mode] * requests / PUBLISHED_REQUESTS
    return seconds * .1, seconds * .9 / max(1, requests // USERS)


def over_time(sampler, answers):
    """For the plots: share of the processors, memory, processes and requests that are under way."""
    cores = len(os.sched_getaffinity(0))
    busy = [(b[0], 100 * (b[1] - a[1]) / (b[0] - a[0]) / cores) for a, b in zip(sampler.load, sampler.load[1:]) if b[0] > a[0]]
    events = sorted([(a.sent, 1) for a in answers] + [(a.sent + a.ms / 1e3, -1) for a in answers])
    waiting, curve, step = 0, [], 0.0
    for at, change in events:
        while at >= step:
            curve.append((round(step, 2), waiting))
            step += CPU_EVERY / 2
        waiting += change
    return {"cpu": busy, "memory": sampler.memory, "processes": [(at, count) for at, _, count in sampler.load], "waiting": curve}


def figures(sampler, answers):
    good = [a for a in answers if a.good]
    times = sorted(a.ms for a in answers)
    seconds = max(a.sent + a.ms / 1e3 for a in answers) - min(a.sent for a in answers)
    cpu = sampler.load[-1][1] - sampler.load[0][1]
    return {"requests": len(answers), "errors": len(answers) - len(good), "seconds": seconds, "per_minute": len(good) / seconds * 60,
            "mean": sum(times) / len(times), "p50": load.percentile(times, .5), "p95": load.percentile(times, .95), "p99": load.percentile(times, .99),
            "worst": times[-1], "late_p95": load.percentile(sorted(a.late + a.ms for a in answers), .95), "cpu": cpu * 1e3 / len(answers),
            "busy": 100 * cpu / seconds / len(os.sched_getaffinity(0)), "memory": max(size for _, size in sampler.memory) / 1e6,
            "processes": max(count for _, _, count in sampler.load), "image": sum(a.bytes for a in good) / max(1, len(good)),
            "time": over_time(sampler, answers)}


def run(server, paths, mode, requests):
    """A server that runs: some requests that do not count, then the test."""
    port = frontends.port_of(server)
    load.run(port, paths[-2 * FCGID_PROCESSES:], FCGID_PROCESSES, 2)  # so that mod_fcgid has started its processes
    ramp, interval = pace(mode, requests)
    with Sampler(server) as sampler:
        answers = load.run(port, paths, USERS, requests // USERS, ramp=ramp, interval=interval, timeout=TIMEOUT)
    return figures(sampler, answers)
