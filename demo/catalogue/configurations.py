#!/usr/bin/python3
"""Writes the configurations of the catalogue into FOLDER/conf, from one template: the sixteen of the case study, and `catalog-auto`,
which sets no option at all; and what the page needs into FOLDER/page.

  configurations.py DATA FOLDER     prints the names, one a line

The names are those of the case study: mt, tiles of a map fetched by threads; amt, products of a tile fetched by threads; qbm, the
catalogue asked once for a map instead of for each tile; geo, the catalogue asked only for products that touch the box."""
import itertools
import json
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
WORDS = {"mt": "tiles in threads", "amt": "products in threads", "qbm": "one query for a map", "geo": "geographic filter"}
GEO = "and minx &lt;= :maxx and maxx >= :minx and miny &lt;= :maxy and maxy >= :miny"


def configurations():
    """(name, the options that are on, or None for the one that leaves everything to the server), the untuned ones first."""
    yield "catalog-auto", None
    for count in range(len(WORDS) + 1):
        for options in itertools.combinations(WORDS, count):
            yield "catalog" + ("-" if options else "") + "".join(options), options


def says(options):
    if options is None:
        return "no option set"
    return ", ".join(WORDS[option] for option in options) or "every option off"


def filled(template, data, folder, maxzoom, options):
    def switch(option, on, off):
        return "" if options is None else on if option in options else off

    values = {"DATA": data, "FOLDER": folder, "MAXZOOM": maxzoom, "WHAT": says(options), "GEO": switch("geo", GEO, ""),
              "MT": switch("mt", "<threaded_fetching>true</threaded_fetching>", "<threaded_fetching>false</threaded_fetching>"),
              "AMT": switch("amt", "<assembly_threaded_fetching>true</assembly_threaded_fetching>",
                            "<assembly_threaded_fetching>false</assembly_threaded_fetching>"),
              "QBM": switch("qbm", "<wms_querybymap>true</wms_querybymap>", "<wms_querybymap>false</wms_querybymap>")}
    for name, value in values.items():
        template = template.replace(f"@{name}@", str(value))
    return "\n".join(line.rstrip() for line in template.splitlines() if line.strip()) + "\n"


def main():
    data, folder = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    maxzoom = json.loads((folder / "page" / "products.geojson").read_text())["maxzoom"]
    template = (HERE / "mapcache.xml.in").read_text()
    (folder / "conf").mkdir(exist_ok=True)
    for name, options in configurations():
        (folder / "conf" / f"{name}.xml").write_text(filled(template, data, folder, maxzoom, options))
        print(name)
    described = [{"name": name, "options": options, "says": says(options)} for name, options in configurations()]
    (folder / "page" / "configurations.json").write_text(json.dumps({"maxzoom": maxzoom, "words": WORDS, "configurations": described}))
    shutil.copytree(HERE / "page", folder / "page", dirs_exist_ok=True)


if __name__ == "__main__":
    main()
