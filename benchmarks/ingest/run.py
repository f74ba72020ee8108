#!/usr/bin/python3
"""Images into cubes and pyramids, by us, by scripts and by GDAL: see benchmarks/README.md. Each run replaces the parts that it measures."""
import argparse
import contextlib
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common.database import DURABLE, Database  # noqa: E402
from common.machine import package  # noqa: E402
from common.report import RESULTS  # noqa: E402
from common.run import begin, earlier, need, publish  # noqa: E402
from common.servers import ROOT, make_folder  # noqa: E402
from ingest import data, gdal, ours, plots, report, scripts, writes  # noqa: E402

PARTS = ("cube", "pyramid", "writes")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between: %(default)s")
    parser.add_argument("--who", default="", help="words, with commas between: those whose name holds one, such as ours,MBTiles")
    parser.add_argument("--images", type=int, default=data.IMAGES)
    parser.add_argument("--png-images", type=int, default=30, help="of the pyramids as PNG, which take GDAL a second each: %(default)s")
    parser.add_argument("--changed-images", type=int, default=4, help="that are measured where each image changes all tiles of the cube: %(default)s")
    parser.add_argument("--tiles", type=int, default=20000, help="of the part writes: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="the median one is kept: %(default)s")
    parser.add_argument("--data", default=str(ROOT / "build" / "bench" / "ingest"), help="folder of what is made once")
    parser.add_argument("--results", default=str(RESULTS / "ingest"))
    parser.add_argument("--cores", help="processors for programs and database, such as 2,3; a pyramid has the first of them for itself")
    options = parser.parse_args()
    options.only = options.only.split(",")
    for part in options.only:
        if part not in PARTS:
            parser.error(f"no part is called {part}: there are {', '.join(PARTS)}")
    options.png_images = min(options.png_images, options.images)
    return options


def wanted(options, name):
    return any(word in name for word in options.who.split(","))


@contextlib.contextmanager
def on_one_processor(database):
    """What is started inside has the first of ours, and the database, too."""
    all_of_them = os.sched_getaffinity(0)

    def give(cores):
        for pid in [os.getpid(), *database.pids()]:
            with contextlib.suppress(ProcessLookupError):  # a session that has just ended
                os.sched_setaffinity(pid, cores)
    give({min(all_of_them)})
    try:
        yield
    finally:
        give(all_of_them)


def in_turn(cells, rounds):
    """Cells are (what they are called, how they are run, how often at most); the run of median time is kept."""
    found = [[] for _ in cells]
    for turn in range(rounds):
        for number, (names, run, most) in list(enumerate(cells))[::1 if turn % 2 == 0 else -1]:
            if turn < most:
                found[number].append(run())
                print(f"  {' '.join(str(name) for name in names.values()):55s} {found[number][-1]['seconds']:9.2f} s", file=sys.stderr, flush=True)
    return [{**names, **sorted(runs, key=lambda r: r["seconds"])[len(runs) // 2], "rounds": len(runs)} for (names, _, _), runs in zip(cells, found)]


def replace(old, fresh):
    """What has not been measured anew stays: ours first, formats together."""
    kinds = {(r["who"], r.get("form")) for r in fresh}
    kept = fresh + [r for r in old if (r["who"], r.get("form")) not in kinds]
    return sorted(kept, key=lambda r: (r.get("form") or "", not r["who"].startswith("ours")))


def cubes(options, folder, images, database):
    cells = [({"who": "ours"}, lambda: ours.cube(folder, database, images, None), options.rounds),
             ({"who": "ours, 64 MiB"}, lambda: ours.cube(folder, database, images, "64M"), options.rounds),
             ({"who": "ours, three overviews"}, lambda: ours.cube(folder, database, images, None, 3), options.rounds)]
    for name, way in scripts.WAYS.items():
        cells.append(({"who": f"script: {name}"}, lambda way=way: scripts.run(way, database, images, options.changed_images), options.rounds if way == "assembled" else 1))
    return in_turn([cell for cell in cells if wanted(options, cell[0]["who"])], options.rounds)


def pyramids(options, folder, images, database):
    cells = []
    for form, count in (("JPEG", options.images), ("PNG", options.png_images)):
        some = images[:count]
        cells += [({"who": f"ours, {store}", "form": form, "images": count}, lambda store=store, form=form, some=some: ours.pyramid(store, form, folder, some, database), options.rounds)
                  for store in ours.STORES]
        cells += [({"who": f"GDAL, {kind.rsplit(' ', 1)[0]}", "form": form, "images": count}, lambda kind=kind, some=some: gdal.pyramid(kind, folder, some), 1)
                  for kind, (_, of) in gdal.KINDS.items() if of == form]
    with on_one_processor(database):
        return in_turn([cell for cell in cells if wanted(options, cell[0]["who"])], options.rounds)


def main():
    options = parse()
    begin(options.cores)
    need("gdal_translate", "gdaladdo", "gdalbuildvrt", "gdal2tiles.py", "cc")
    result = earlier(options.results, "ingest")
    folder = make_folder("bench-ingest")
    made = data.make(options.data, options.images)
    try:
        with Database(DURABLE) as database:
            if "cube" in options.only:
                result["cube"] = replace(result.get("cube", []), cubes(options, folder, data.series(made, options.images), database))
            if "pyramid" in options.only:
                result["pyramid"] = replace(result.get("pyramid", []), pyramids(options, folder, data.mosaic(made, options.images), database))
        if "writes" in options.only:
            result["writes"] = writes.measure(options.tiles, options.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    publish(options.results, "ingest", result, report.markdown, plots.draw, GDAL=package("gdal-bin"))


if __name__ == "__main__":
    main()
