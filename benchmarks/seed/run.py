#!/usr/bin/python3
"""Metatiles drawn from PostGIS, by our seeder and by Debian's renderd: see benchmarks/README.md. Each run replaces the parts that it measures."""
import argparse
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common.database import Database  # noqa: E402
from common.machine import package  # noqa: E402
from common.report import RESULTS  # noqa: E402
from common.run import begin, earlier, need, publish  # noqa: E402
from common.servers import ROOT, make_folder  # noqa: E402
from load import data as shapes  # noqa: E402
from peers import peer  # noqa: E402
from seed import data, measure, origin, plots, report, walk  # noqa: E402

PARTS = ("metatiles", "origin", "walk")
PROGRAMS = {kind.name: kind for kind in (measure.Ours, measure.Renderd)}


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between: %(default)s")
    parser.add_argument("--programs", default="ours,renderd", help="of the part metatiles: %(default)s")
    parser.add_argument("--metatiles", type=int, default=90, help="of each of the two sets")
    parser.add_argument("--rounds", type=int, default=6, help="how often the two sets take turns (published: 6)")
    parser.add_argument("--threads", type=int, default=2, help="of both programs")
    parser.add_argument("--last", type=int, default=walk.LARGE, help="last level of the walk")
    parser.add_argument("--data", default=str(ROOT / "build" / "bench" / "load"), help="folder of what is fetched or made once, that of `script/bench load`")
    parser.add_argument("--results", default=str(RESULTS / "seed"))
    parser.add_argument("--cores", help="processors for programs and database, such as 2,3")
    parser.add_argument("--keep", action="store_true", help="leave the folder with configurations and tiles")
    options = parser.parse_args()
    options.only, options.programs = options.only.split(","), options.programs.split(",")
    for name in options.programs:
        if name not in PROGRAMS:
            parser.error(f"no program is called {name}: there are {', '.join(PROGRAMS)}")
    for part in options.only:
        if part not in PARTS:
            parser.error(f"no part is called {part}: there are {', '.join(PARTS)}")
    return options


def tell(record):
    print(f"  {record['who']:8s} set {record['set']}  {record['rate']:6.2f} metatiles/s  {record['seconds']:6.2f} s  "
          f"cpu {record['cpu']:6.1f} + {record['database']:5.1f} ms", file=sys.stderr, flush=True)


def draw_all(options, folder):
    """Programs in turn on each set, the sets in turn; a few metatiles of each that do not count come first."""
    need("ogr2ogr", "shptree", *([peer("/usr/bin/renderd"), peer("/usr/bin/render_list")] if "renderd" in options.programs else []))
    shape_folder = shapes.make(options.data)
    sets = data.metatiles(shape_folder, options.metatiles)
    data.write_lists(folder, {**sets, "warm": sets["A"][:8]})
    runs, stored = [], {}
    with Database() as database:
        data.load(database, shape_folder)
        programs = []
        try:
            for name in options.programs:
                programs.append(PROGRAMS[name](folder, database, options.threads))
            for program in programs:
                program.draw("warm")
            for turn in range(options.rounds):
                for name in data.SETS:
                    for program in programs[::1 if turn % 2 == 0 else -1]:
                        runs.append({"who": program.name, "set": name, **measure.one(program, name, len(sets[name]), database)})
                        tell(runs[-1])
            stored = {program.name: program.stored() for program in programs}
        finally:
            for program in programs:
                program.close()
    return {"metatiles": options.metatiles, "threads": options.threads, "runs": runs, "stored": stored}


def main():
    options = parse()
    begin(options.cores)
    result = earlier(options.results, "seed")
    folder = make_folder("bench-seed")
    try:
        if "metatiles" in options.only:
            result.update(draw_all(options, folder))
        if "origin" in options.only:
            result["origin"] = origin.measure(folder, options.metatiles, 3)
        if "walk" in options.only:
            result["walk"] = walk.measure(folder, options.last)
    finally:
        if options.keep:
            print(f"kept: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    publish(options.results, "seed", result, report.markdown, plots.draw, renderd=f"{package('renderd')}, Mapnik {package('libmapnik3.1')}")


if __name__ == "__main__":
    main()
