#!/usr/bin/python3
"""Writes the configurations of the vector maps into FOLDER/vector/conf, from one template, and the page into FOLDER/vector/page.

  configurations.py FOLDER [CONNECTION]     prints the names, one a line

`shapefile` draws from the shapefiles in FOLDER/vector; `postgis`, if there is a connection string, from the tables of the same
names in that database."""
import json
import pathlib
import shutil
import sys
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
TABLES = ["sea", "lines", "countries", "borders", "places", "counties", "states", "limits"]


def filled(data, name, what, source):
    """The template with `source(table)` as the data of each layer."""
    values = {"NAME": name, "TYPE": name, "WHAT": what, "DATA": data, "STYLES": data / "styles"}
    values.update({table: source(table) for table in TABLES})
    text = (HERE / "mapcache.xml.in").read_text()
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return text


def main():
    data = pathlib.Path(sys.argv[1]).resolve() / "vector"
    connection = sys.argv[2] if len(sys.argv) > 2 else ""
    (data / "conf").mkdir(exist_ok=True)
    kinds = {"shapefile": ("shapefiles", lambda table: f"<data>{data}/{table}.shp</data>")}
    if connection:
        kinds["postgis"] = ("PostGIS", lambda table: f"<connection>{escape(connection)}</connection><table>{table}</table><id>id</id>")
    for old in (data / "conf").glob("*.xml"):
        old.unlink()
    for name, (what, source) in kinds.items():
        (data / "conf" / f"{name}.xml").write_text(filled(data, name, what, source))
        print(name)
    shutil.copytree(HERE / "styles", data / "styles", dirs_exist_ok=True)
    shutil.copytree(HERE / "page", data / "page", dirs_exist_ok=True)
    (data / "page" / "maps.json").write_text(json.dumps({"sources": list(kinds)}))


if __name__ == "__main__":
    main()
