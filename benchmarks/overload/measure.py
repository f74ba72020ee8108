"""One server: what it draws in a second, how long stored tiles take while nothing else happens, and the same while far more maps are asked for."""
import collections

from common import load

DRAWING_USERS, DRAWING_SECONDS = 8, 5.0
HIT_USERS, HIT_INTERVAL, HIT_SECONDS = 20, .1, 8.0
RAMP, CROWD_SECONDS = 4.0, 14.0
TIMES = 50           # so much more is asked for than can be drawn
ADDRESSES = 250      # of the crowd
POLITE, POLITE_INTERVAL = 8, 1.0
TIMEOUT = 60.0


def times(answers):
    """Median and 99th percentile, ms."""
    sorted_times = sorted(a.ms for a in answers)
    return {"p50": load.percentile(sorted_times, .5), "p99": load.percentile(sorted_times, .99)}


def drawing_rate(target, maps):
    """Maps/s with some users that ask again at once."""
    answers = load.run(target, maps, DRAWING_USERS, 100000, timeout=TIMEOUT, seconds=DRAWING_SECONDS)
    good = [a for a in answers if a.good]
    last = max((a.sent + a.ms / 1e3 for a in good), default=DRAWING_SECONDS)
    return len(good) / last


def ask_for_tiles(target, tiles, seconds=HIT_SECONDS):
    return load.Crowd(target, tiles, HIT_USERS, int(seconds / HIT_INTERVAL), ramp=HIT_INTERVAL, interval=HIT_INTERVAL, timeout=TIMEOUT,
                      seconds=seconds + 5, clients=("127.3.0.1", HIT_USERS))


def hit_figures(answers):
    return {**times(answers), "count": len(answers), "errors": sum(not a.good for a in answers)}


def crowd_figures(answers, seconds):
    """Of requests after all users had begun. A request that nobody has answered at the end was under way."""
    after = [a for a in answers if a.sent >= RAMP]
    maps, refused = [a for a in after if a.good], [a for a in after if a.status == 503]
    waiting = [a for a in after if a.status == -1]
    return {"offered": len(after) / seconds, "maps": {**times(maps), "count": len(maps), "rate": len(maps) / seconds},
            "refused": {**times(refused), "count": len(refused), "with_time": sum(a.told for a in refused),
                        "soon": sum(a.ms <= 50 for a in refused) / max(1, len(refused))},
            "waiting": len(waiting), "others": len(after) - len(maps) - len(refused) - len(waiting),
            "statuses": dict(collections.Counter(a.status for a in after))}


def tiles_meanwhile(target, tiles):
    """Those that were asked for when the crowd was complete."""
    answers, _ = ask_for_tiles(target, tiles, RAMP + 1.0 + HIT_SECONDS).finish()
    return hit_figures([a for a in answers if a.sent >= RAMP + 1.0])


def overload(target, tiles, maps, connections, rate, addresses=ADDRESSES):
    """The crowd, and those who ask for tiles meanwhile (None where the server has none), and some others who ask for maps, each at an address of its own."""
    crowd = load.Crowd(target, maps, connections, 100000, ramp=RAMP, interval=connections / (TIMES * rate), timeout=TIMEOUT,
                       seconds=RAMP + CROWD_SECONDS, clients=("127.1.0.1", addresses))
    polite = load.Crowd(target, maps[::-1], POLITE, int((CROWD_SECONDS - 2) / POLITE_INTERVAL), ramp=RAMP + 1.0, interval=POLITE_INTERVAL, timeout=TIMEOUT,
                        seconds=RAMP + CROWD_SECONDS, clients=("127.2.0.1", POLITE))
    hits = None if tiles is None else tiles_meanwhile(target, tiles)
    answers, most = crowd.finish()
    asked, _ = polite.finish()
    asked = [a for a in asked if a.sent >= RAMP]
    return {"hits": hits, "connections": most, "polite": {**times([a for a in asked if a.good]), "count": len(asked), "good": sum(a.good for a in asked)},
            **crowd_figures(answers, CROWD_SECONDS)}


def run(target, tiles, maps, connections, addresses=ADDRESSES):
    load.run(target, maps[-16:], 8, 2, timeout=TIMEOUT)
    quiet = None
    if tiles is not None:
        load.run(target, tiles, 4, len(tiles) // 4, timeout=TIMEOUT)
        quiet = hit_figures(ask_for_tiles(target, tiles).finish()[0])
    rate = drawing_rate(target, maps)
    return {"quiet": quiet, "rate": rate, **overload(target, tiles, maps, connections, rate, addresses)}
