#!/usr/bin/python3
"""Writes the configurations of the vector maps into RUN, from one template, and the page into RUN/page.

  configurations.py FOLDER RUN LIBRARY [CONNECTION]     prints the names of the configurations, one a line

`shapefile` draws from the shapefiles in FOLDER; `postgis`, if there is a connection string, from the tables of the same names in
that database. Tiles in FOLDER that were drawn by another LIBRARY or by other styles are deleted."""
import hashlib
import json
import pathlib
import shutil
import sys
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
TABLES = ["sea", "lines", "countries", "borders", "places", "counties", "county_places", "states", "state_places", "limits"]


JOBS = '<jobs><connection>{}</connection></jobs>\n  <service type="jobs" enabled="true"><public>true</public></service>'


def filled(data, run, name, what, source, jobs=""):
    """The template with `source(table)` as the data of each layer."""
    values = {"NAME": name, "TYPE": name, "WHAT": what, "DATA": data, "STYLES": run / "page" / "styles", "JOBS": jobs}
    values.update({table: source(table) for table in TABLES})
    text = (HERE / "mapcache.xml.in").read_text()
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return text


def forget_tiles(data, library):
    """Those that were drawn by another library, by other styles or from other data."""
    files = [library, HERE / "mapcache.xml.in", *sorted((HERE / "styles").iterdir()), data / "made"]
    now = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    stamp = data / "drawn"
    if not stamp.exists() or stamp.read_text() != now:
        for tiles in data.glob("*.sqlite3*"):
            tiles.unlink()
        stamp.write_text(now)


def main():
    data, run, library = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    kinds = {"shapefile": ("shapefiles", lambda table: f"<data>{data}/{table}.shp</data>")}
    if len(sys.argv) > 4:
        connection = f"<connection>{escape(sys.argv[4])}</connection><transfer>binary</transfer>"  # the database is near
        kinds["postgis"] = ("PostGIS", lambda table: f"{connection}<table>{table}</table><id>id</id>")
    shutil.copytree(HERE / "page", run / "page", dirs_exist_ok=True)
    shutil.copytree(HERE / "styles", run / "page" / "styles", dirs_exist_ok=True)
    (run / "page" / "sources.json").write_text(json.dumps(list(kinds)))
    for name, (what, source) in kinds.items():
        jobs = JOBS.format(escape(sys.argv[4])) if name == "postgis" else ""  # a queue of jobs needs a database
        (run / f"{name}.xml").write_text(filled(data, run, name, what, source, jobs))
        print(name)
    forget_tiles(data, library)


if __name__ == "__main__":
    main()
