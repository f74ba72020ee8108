#!/usr/bin/python3
"""Bytes and processor time of pictures in each image format, over a corpus of drawn maps, relief and photographs. See benchmarks/README.md."""
import argparse
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common.machine import describe  # noqa: E402
from common.report import Report, table  # noqa: E402
from common.run import begin, need  # noqa: E402
from common.servers import ROOT, make_folder  # noqa: E402
from formats.corpus import pictures, read_photographs, write_raw  # noqa: E402

PROGRAM = ROOT / "build/micro/bin/micro_formats"


def measure(program, rounds, files):
    """(name of the file, format, how) to milliseconds and bytes."""
    out = subprocess.run([program, str(rounds), *files], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in out.splitlines():
        path, name, how, ms, size = line.split("\t")
        found[pathlib.Path(path).stem, name, how] = float(ms), int(size)
    return found


def rows_of(report, beside, areas):
    """A row for each picture, format and purpose; megapixels a second, bytes a pixel, and both beside the other program."""
    medians = {(row["case"], row["variant"]): row for row in report.medians()}
    for (case, variant), row in medians.items():
        if variant != "this build":
            continue
        cells = [*case.split(", "), f"{row['ms']:.2f}", f"{areas[case.split(', ')[0]] / row['ms'] / 1e3:.0f}", f"{row['bytes']:.0f}"]
        other = medians.get((case, "beside"))
        yield cells + ([f"{other['ms'] / row['ms']:.2f}", f"{100 * row['bytes'] / other['bytes'] - 100:+.1f} %"] if beside and other else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, action="append", help="edge of the pictures, pixels; several times; by default 256 and 1024")
    parser.add_argument("--rounds", type=int, default=9, help="how often the programs run, in turn")
    parser.add_argument("--photographs", type=pathlib.Path, help="a folder with pictures of your own")
    parser.add_argument("--beside", type=pathlib.Path, help="the same program of another build")
    options = parser.parse_args()
    begin()
    need(PROGRAM, *([options.beside] if options.beside else []))
    folder, report, areas = make_folder("bench-formats"), Report("formats"), {}
    for size in options.size or [256, 1024]:
        named = [*pictures(size), *(read_photographs(options.photographs, size) if options.photographs else [])]
        for name, rgba in named:
            write_raw(folder / f"{name} {size}.raw", rgba)
            areas[f"{name} {size}"] = size * size
    files = sorted(str(path) for path in folder.glob("*.raw"))
    for _ in range(options.rounds):
        for variant, program in (("this build", PROGRAM), ("beside", options.beside)):
            for key, (ms, size) in (measure(program, 5, files) if program else {}).items():
                report.add(", ".join(key), variant, {"ms": ms, "bytes": size})
    print("\n".join(f"{word}: {value}" for word, value in describe(ROOT).items()))
    report.write()
    columns = ["picture", "format", "", "ms", "Mpixel/s", "bytes"] + (["times as fast", "bytes, beside"] if options.beside else [])
    print(table(columns, rows_of(report, options.beside, areas)))


if __name__ == "__main__":
    main()
