#!/usr/bin/python3
"""Random maps of each data set from its overviews and from its table: how much they differ and cost. See benchmarks/README.md."""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common.database import Database  # noqa: E402
from common.report import RESULTS  # noqa: E402
from common.run import begin, need, publish, some  # noqa: E402
from overviews import data, measure, pictures, report  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(data.SETS), help="sets of data")
    parser.add_argument("--maps", type=int, default=200, help="of each set")
    parser.add_argument("--edge", type=int, default=400, help="pixels of a map's side")
    parser.add_argument("--data", default=str(pathlib.Path(__file__).resolve().parents[2] / "build" / "bench" / "postgis"), help="folder of the data, which is made when it is first asked for")
    parser.add_argument("--results", default=str(RESULTS / "overviews"))
    parser.add_argument("--cores", help="processors for server, database and client, such as 2,3")
    return parser.parse_args()


def measure_set(tables, name, options, gallery):
    tables.load(name)
    built, records = measure.measure(tables.database, name, options.maps, options.edge, gallery.keep)
    built["table"] = int(tables.database.sql(f"SELECT pg_table_size('{name}')")[0]) / 1e6
    print("\n".join(built["said"] + [report.table(["maps"] * 8, [report.line(name, records)])] if records else built["said"]), file=sys.stderr, flush=True)
    return built, records


def main():
    options = parse()
    begin(options.cores)
    need("apache2")
    gallery = pictures.Gallery(pathlib.Path(options.results) / "pictures", max(1, options.maps // 5))
    result = {"edge": options.edge, "built": {}, "records": []}
    with Database() as database:
        tables = data.Tables(options.data, database)
        for name in some(data.SETS, options.only):
            result["built"][name], records = measure_set(tables, name, options, gallery)
            result["records"] += records
    publish(options.results, "overviews", result, report.markdown, lambda _result, _folder: None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
