#!/usr/bin/python3
"""The same ten maps of tables of 10,000 to 10,000,000 rows, by us, with and without overviews, and by MapServer: see benchmarks/README.md."""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common.database import Database  # noqa: E402
from common.report import RESULTS  # noqa: E402
from common.run import begin, need, publish  # noqa: E402
from scale import config, data, measure, plots, report  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="10000,100000,1000000", help="of the tables; 10000000 take 6 GB of disk while they are made, and ten minutes")
    parser.add_argument("--zooms", default=",".join(map(str, config.ZOOMS)))
    parser.add_argument("--rounds", type=int, default=3, help="after the first map of each process")
    parser.add_argument("--ours", action="store_true", help="without MapServer")
    parser.add_argument("--results", default=str(RESULTS / "scale"))
    parser.add_argument("--cores", help="processors for servers, database and client, such as 2,3")
    options = parser.parse_args()
    options.rows = sorted(int(float(word)) for word in options.rows.split(","))
    options.zooms = [int(word) for word in options.zooms.split(",")]
    return options


def tell(record):
    print(f"  {record['rows']:9d} rows  zoom {record['zoom']:4d}  {record['who']:16s} {record['server']:9.2f} + {record['database']:9.2f} ms, first {record['first']:9.2f}"
          + (f"  {record['errors']} ERRORS" if record["errors"] else ""), file=sys.stderr, flush=True)


def measure_rows(database, rows, boxes, options, missing):
    """Of one table, which is gone afterwards: records, what the table is, and what its overviews took (nothing where there are none)."""
    size, whole = data.make_table(database, rows)
    entry = {"rows": rows, "size": size, "whole": whole, "features": {zoom: data.features_in(database, rows, box) for zoom, box in boxes.items()}}
    names = [name for name in (measure.OURS, measure.PEER) if name not in missing and not (options.ours and name == measure.PEER)]
    records, built = measure.measure_table(database, rows, boxes, names, options.rounds, tell), []
    if measure.OVERVIEWS not in missing:
        built = [measure.build_overviews(database, rows)]
        records += measure.measure_table(database, rows, boxes, [measure.OVERVIEWS], options.rounds, tell)
    database.sql(f"DROP TABLE {data.name_of(rows)} CASCADE")
    return records, entry, built


def main():
    options = parse()
    begin(options.cores)
    need("apache2")
    missing = measure.missing()
    result = {"records": [], "tables": [], "overviews": [], "missing": missing, "left": {}, "edge": config.EDGE}
    with Database() as database:
        data.prepare(database)
        boxes = data.boxes(data.middle(database), options.zooms)
        for rows in options.rows:
            if not data.enough_disk(database.folder, rows):
                result["left"][f"{rows:,} rows"] = "not enough disk"
                print(f"  {rows} rows: not enough disk", file=sys.stderr, flush=True)
                continue
            records, entry, built = measure_rows(database, rows, boxes, options, missing)
            result["records"] += records
            result["tables"].append(entry)
            result["overviews"] += built
    if not result["records"]:
        sys.exit("no table fits on this disk")
    publish(options.results, "scale", result, report.markdown, plots.draw)
    return 1 if any(record["errors"] for record in result["records"]) else 0


if __name__ == "__main__":
    sys.exit(main())
