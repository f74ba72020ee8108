"""Writes the examples in the comments of the public headers as C files: header_<header>_<number>.c in a folder.

usage: extract.py HEADER_FOLDER OUTPUT_FOLDER
An example stands in a comment behind a line that begins with "Example:", with four blanks before each of its lines. Each
is a file of its own that includes its header first. An example with a function main is a program; the others only have
to compile and to link.
"""
import pathlib
import re
import sys

EXAMPLE = re.compile(r"^ \* Example:[^\n]*\n(?: \* [^ \n][^\n]*\n)*((?: \*(?:     [^\n]*)?\n)+)", re.MULTILINE)


def examples(header):
    text = header.read_text()
    found = ["\n".join(line[7:] for line in block.splitlines()).strip() for block in EXAMPLE.findall(text)]
    if len(found) != text.count("\n * Example:") or not all(found):
        sys.exit(f"{header}: an example has no code, or its lines do not begin with four blanks")
    return found


def main(headers, output):
    output.mkdir(parents=True, exist_ok=True)
    wanted = {}
    for header in sorted(headers.glob("*.h")):
        for number, code in enumerate(examples(header), 1):
            wanted[f"header_{header.stem}_{number}.c"] = f'#include "mapcache/{header.name}"\n\n{code}\n'
    for stale in output.glob("header_*.c"):
        if stale.name not in wanted:
            stale.unlink()
    for name, code in wanted.items():
        file = output / name
        if not file.exists() or file.read_text() != code:
            file.write_text(code)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
