"""What tiles cost that are made, and those that are kept; what is in them."""
import math

from common.servers import cpu_seconds
from vector import config, parse

CACHED_FROM = 8      # the first level whose kept tiles are measured: those of whole countries measure the connection
CACHED_REQUESTS, CACHED_BYTES = 1000, 10_000_000  # that are sent at most, or once round
READ_TILES, READ_BYTES = 4, 2_000_000  # of a level and a server, what is read in Python; of larger tiles features are counted, but not examined


def asked(peer, database, table, tiles, times=1):
    """Processor seconds of the server and of the database, bytes as sent, and errors."""
    before = peer.cpu(), cpu_seconds(database.pids())
    sizes, errors = peer.ask(table, tiles, times)
    return {"server": peer.cpu() - before[0], "database": cpu_seconds(database.pids()) - before[1], "bytes": sum(sizes), "errors": errors, "tiles": len(tiles) * times}


def warm(peers, world):
    """Each has asked for each table, so that connections are open and statements are known; does not count."""
    for peer in peers:
        for table in world.sets:
            tiles = world.tiles(table, config.LEVELS.stop - 1, 1)
            for _ in range(2):
                peer.prepare(table, tiles)
                peer.ask(table, tiles[:2])


def add(totals, key, found):
    old = totals.setdefault(key, dict.fromkeys(found, 0))
    for name, value in found.items():
        old[name] += value


def measure_level(peers, world, table, level, blocks, rounds, totals):
    """Peers take turns, in an order that shifts; each makes all tiles in each round, but for one that cannot be made to forget them."""
    tiles = world.tiles(table, level, blocks)
    able = [peer for peer in peers if peer.makes]
    for turn in range(rounds):
        shift = (turn + level) % max(1, len(able))
        for peer in able[shift:] + able[:shift]:
            peer.prepare(table, tiles)
            add(totals, (table, level, peer.name, "made"), asked(peer, world.database, table, tiles))
    if level >= CACHED_FROM:
        for peer in peers:
            if peer.keeps:
                sizes, _ = peer.ask(table, tiles)
                times = math.ceil(min(CACHED_REQUESTS / len(tiles), CACHED_BYTES / max(1, sum(sizes))))
                add(totals, (table, level, peer.name, "kept"), asked(peer, world.database, table, tiles, times))


def content(peer, table, tiles):
    """Of some tiles of a level: bytes before they are packed, the number of features, and of those that are not too large, what the parser finds."""
    found = {"read": 0, "large": 0, "bytes": 0, "features": 0, "vertices": 0, "examined": 0, "invalid": 0, "wrong": []}
    for tile in tiles[::max(1, len(tiles) // READ_TILES)][:READ_TILES]:
        data = peer.fetch(table, tile)
        found["bytes"] += len(data)
        if len(data) > READ_BYTES:
            found["large"] += 1
            found["features"] += parse.count_features(data)
            continue
        seen = parse.examine(data)
        found["read"] += 1
        if wrong := seen.pop("wrong"):
            found["wrong"].append(wrong)
        for key, value in seen.items():
            found[key] += value
    return found


def measure(peers, world, levels, blocks, rounds, tell):
    """Records of all tables, levels and peers, and what vector tiles hold."""
    warm(peers, world)
    kinds, totals, contents = {peer.name: peer.kind for peer in peers}, {}, []
    for table in world.sets:
        for level in levels:
            measure_level(peers, world, table, level, blocks, rounds, totals)
            for peer in (peer for peer in peers if peer.makes):
                tell(table, level, peer.name, totals[table, level, peer.name, "made"])
                if peer.kind == "vector":
                    contents.append({"set": table, "level": level, "who": peer.name, **content(peer, table, world.tiles(table, level, blocks))})
    records, order = [], [peer.name for peer in peers]
    for (table, level, name, state), total in sorted(totals.items(), key=lambda item: (world.sets.index(item[0][0]), item[0][1], order.index(item[0][2]))):
        count = total["tiles"]
        records.append({"set": table, "level": level, "who": name, "kind": kinds[name], "state": state, "tiles": count, "errors": total["errors"],
                        "server": total["server"] * 1e3 / count, "database": total["database"] * 1e3 / count, "bytes": total["bytes"] / count})
    return records, contents
