#!/usr/bin/python3
"""Maps drawn from PostGIS and shapefiles, by us and by MapServer: see benchmarks/README.md. Each run replaces the sets that it measures."""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import frontends  # noqa: E402
from common.database import Database  # noqa: E402
from common.report import RESULTS  # noqa: E402
from common.run import begin, earlier, need, publish, some  # noqa: E402
from common.servers import ROOT  # noqa: E402
from postgis import config, measure, plots, report, tiles  # noqa: E402
from postgis.data import Data  # noqa: E402


def numbers(text):
    return [int(word) for word in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="villages,municipalities,parcels,roads,points", help="of the data; municipalities are fetched with npm")
    parser.add_argument("--zooms", type=numbers, help="such as 1,32; default: as published (1,4,16,32), others for the larger sets")
    parser.add_argument("--threads", type=numbers, default=[1, 5, 10, 20])
    parser.add_argument("--maps", type=int, default=20, help="of each thread")
    parser.add_argument("--limit", type=int, default=0, help="most maps of a cell and round, all threads together (0: no limit)")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="words, with commas between: those of the servers whose name holds one, such as binary,shapefile")
    parser.add_argument("--no-tiles", action="store_true", help="without vector against raster tiles")
    parser.add_argument("--edge", type=int, default=1000, help="pixels of a map's side")
    parser.add_argument("--data", default=str(ROOT / "build" / "bench" / "postgis"), help="folder of what is fetched or made once")
    parser.add_argument("--results", default=str(RESULTS / "postgis"))
    parser.add_argument("--cores", help="processors for servers, database and client, such as 2,3")
    options = parser.parse_args()
    options.sets = options.sets.split(",")
    for name in options.sets:
        if name not in config.ZOOMS:
            parser.error(f"no data is called {name}: there are {', '.join(config.ZOOMS)}")
    return options


def cells(options):
    """Set, zoom and number of threads, in the order in which they are measured."""
    return [(name, zoom, threads) for name in options.sets for zoom in options.zooms or config.ZOOMS[name] for threads in options.threads]


def tell(key, found):
    if "mean" not in found:
        print(f"  {key}: no map at all", file=sys.stderr, flush=True)
        return
    print(f"  {key[0]} zoom {key[1]:<3d} {key[2]:2d} threads  {key[3]:22s} {found['mean']:8.1f} +- {found['deviation']:6.1f} ms  {found['rate']:7.1f} maps/s  "
          f"cpu {found['cpu']:6.2f} + {found['database']:5.2f} ms" + (f"  {found['errors']} ERRORS" if found["errors"] else ""), file=sys.stderr, flush=True)


def measure_all(options, peers, database):
    """Servers take turns in each cell, in an order that shifts from one to the next; two maps of each thread that do not count come first."""
    found, shift = {}, 0
    for turn in range(options.rounds):
        for name, zoom, threads in cells(options):
            maps = min(options.maps, max(1, options.limit // threads)) if options.limit else options.maps
            boxes = config.boxes(zoom, threads, maps, turn)
            shift += 1
            able = [peer for peer in peers if peer.name != "ours pixel" or name in config.THINNED]
            for peer in able[shift % len(able):] + able[:shift % len(able)]:
                if turn == 0:
                    peer.ask(name, config.boxes(zoom, threads, 2, -1), threads, options.edge)
                key = (name, zoom, threads, peer.name)
                found[key] = measure.add(found.get(key), measure.run_cell(peer, database, name, boxes, threads, options.edge))
                if turn == options.rounds - 1:
                    tell(key, measure.record(key, found[key]))
    order = {peer.name: i for i, peer in enumerate(peers)}
    return [measure.record(key, found[key]) for key in sorted(found, key=lambda k: (options.sets.index(k[0]), k[1], k[2], order[k[3]]))]


def main():
    options = parse()
    begin(options.cores)
    need("apache2", "ogr2ogr", "shptree", frontends.MAPSERVER)
    variants = config.transfers() + ["pixel", "shapefile"]
    names = some(measure.names(variants), options.only)
    with Database() as database:
        data = Data(options.data, database)
        rows = {name: data.load(name) for name in options.sets}
        with measure.running(options.sets, variants, data) as peers:
            records = measure_all(options, [peer for peer in peers if peer.name in names], database)
        tile_records = [] if options.no_tiles else tiles.measure(options.sets, data)
    old = earlier(options.results, "postgis", {"rows": {}, "records": [], "tiles": []})
    result = {"rows": {**old["rows"], **rows},
              "records": [r for r in old["records"] if r["set"] not in options.sets] + records,
              "tiles": [r for r in old.get("tiles", []) if options.no_tiles or r["set"] not in options.sets] + tile_records}
    publish(options.results, "postgis", result, report.markdown, plots.draw)
    return 1 if any(r["errors"] for r in records + tile_records) else 0


if __name__ == "__main__":
    sys.exit(main())
