#!/usr/bin/python3
"""Vector tiles by us, ST_AsMVT and martin, and image tiles by us, Mapnik and MapLibre Native: see benchmarks/README.md. Peers that are not installed are named."""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common.database import Database  # noqa: E402
from common.report import RESULTS  # noqa: E402
from common.run import begin, need, publish, some  # noqa: E402
from common.servers import ROOT  # noqa: E402
from vector import config, levels, makers, plots, report  # noqa: E402
from vector.data import SHAPES, World  # noqa: E402
from vector.measure import measure  # noqa: E402

MEMORY = pathlib.Path("/dev/shm")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SHAPES), help="of the data")
    parser.add_argument("--levels", default="4-14", help="such as 4-14 or 10-10")
    parser.add_argument("--blocks", type=int, default=1, help="squares of 4x4 tiles that are asked for at each level")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="words, with commas between: those of the servers whose name holds one, such as ours,mvt")
    parser.add_argument("--pictures", help="folder for an image tile of each level by each of those that draw")
    parser.add_argument("--data", default=str(ROOT / "build" / "bench" / "postgis"), help="folder of what is made once")
    parser.add_argument("--results", default=str(RESULTS / "vector"))
    parser.add_argument("--cores", help="processors for servers, database and client, such as 2,3")
    options = parser.parse_args()
    options.sets = options.sets.split(",")
    for name in options.sets:
        if name not in SHAPES:
            parser.error(f"no data is called {name}: there are {', '.join(SHAPES)}")
    first, _, last = options.levels.partition("-")
    options.levels = range(int(first), int(last or first) + 1)
    if not set(options.levels) <= set(config.LEVELS):
        parser.error(f"levels are {config.LEVELS.start} to {config.LEVELS.stop - 1}")
    return options


def tell(table, level, name, total):
    print(f"  {table:10s} level {level:2d}  {name:44s} {total['server'] * 1e3 / total['tiles']:9.3f} + {total['database'] * 1e3 / total['tiles']:9.3f} ms for a tile"
          + (f"  {total['errors']} ERRORS" if total["errors"] else ""), file=sys.stderr, flush=True)


def save_pictures(found, world, options):
    """To be looked at: the same tile by all that draw."""
    folder = pathlib.Path(options.pictures)
    folder.mkdir(parents=True, exist_ok=True)
    for peer in found:
        for table in world.sets if peer.kind == "image" else ():
            for level in options.levels:
                tile = world.tiles(table, level, 1)[0]
                path = folder.resolve() / f"{table}-{level}-{peer.name.split(',')[0].replace(' ', '-')}.png"
                if isinstance(peer, makers.Renderer):
                    peer.draw(table, tile, path)
                else:
                    path.write_bytes(peer.fetch(table, tile))


def main():
    options = parse()
    begin(options.cores)
    need("apache2", "pg_config", "cc")
    missing = makers.missing()
    for name, why in missing.items():
        print(f"  missing: {name}: {why}", file=sys.stderr, flush=True)
    with Database() as database:
        world = World(options.data, database, options.sets)
        with makers.running(world, MEMORY if MEMORY.is_dir() else None) as (there, path):
            names = some([peer.name for peer in there], options.only)
            found = [peer for peer in there if peer.name in names]
            built = [levels.build(world, path, table) for table in world.sets] if levels.ROW in names else []
            records, contents = measure(found, world, options.levels, options.blocks, options.rounds, tell)
            if options.pictures:
                save_pictures(found, world, options)
            versions = {peer.name.split(",")[0]: peer.version for peer in found if isinstance(peer, makers.Renderer)}
    result = {"rows": world.rows, "missing": missing, "overviews": built, "records": records, "contents": contents}
    publish(options.results, "vector", result, report.markdown, plots.draw, **versions, **makers.versions())
    return 1 if any(record["errors"] for record in records) else 0


if __name__ == "__main__":
    sys.exit(main())
