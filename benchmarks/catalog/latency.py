"""How long requests take: repeated ones, the first one of a process, and the first one at a zoom with the files open."""
from catalog import config, requests
from catalog.measure import cold, warm
from catalog.requests import Case, tile_box, wms


def warm_part(bench, part, cases, rounds):
    cases = bench.wanted(cases)
    if not cases:
        return
    with bench.all_running(bench.files()) as servers:
        for case in cases:
            bench.add(warm(part, case, servers, rounds, bench.case_seconds))


def base(bench):
    """The basemap alone: one tile, 16 tiles at once, small and large maps."""
    warm_part(bench, "base", requests.base_cases(), bench.rounds * 10)


def filtered(bench):
    """The twelve windows with the geographic filter, repeated."""
    warm_part(bench, "filtered", requests.filtered_cases("catalog-geo", bench.windows, "warm"), bench.rounds)


def threaded(bench):
    """The same with the options that start threads: in MapCache one for each tile, or for each product of a tile."""
    for alias in ("catalog-mtgeo", "catalog-amtgeo", "catalog-mtamtgeo"):
        warm_part(bench, "threaded", requests.filtered_cases(alias, bench.windows, "warm"), bench.rounds)


def unfiltered(bench):
    """No geographic filter: all products are asked for every tile. Repeated."""
    warm_part(bench, "unfiltered", requests.unfiltered_cases(bench.windows, "warm"), max(3, bench.rounds // 2))


def configurations(bench):
    """Every configuration of the case study at zoom 2, each on servers of its own (MapCache's threads leave files open until it has no more):
    a map, and 16 tiles at once."""
    for alias in config.ALIASES:
        cases = [requests.wms_1024(alias, *bench.windows[0]), requests.wmts_16(alias, *bench.windows[0])]
        warm_part(bench, "configurations", cases, max(3, bench.rounds // 3))


def one(bench):
    """One product in the deep windows; four peaks over the basemap."""
    warm_part(bench, "one", requests.one_product_cases(bench.windows), bench.rounds)


def first(bench):
    """The first request of a process: nothing in memory, no file open; the page cache is warm."""
    files = bench.files()
    cases = list(requests.filtered_cases("catalog-geo", bench.windows, "first")) + list(requests.unfiltered_cases(bench.windows, "first"))
    for case in bench.wanted(cases):
        for record in cold("first", [case], bench.who, files, bench.cold_rounds, "first", bench.dataset.folder / "product"):
            bench.add(record)


def opened(bench):
    """The first request at a zoom, after a map of the world at zoom 1 that opened every file (or as many as the server keeps open)."""
    files = bench.files()
    unfiltered_cases = list(requests.unfiltered_cases(bench.windows, "open"))
    groups = [("catalog-geo", list(requests.filtered_cases("catalog-geo", bench.windows, "open"))),
              ("catalog", [c for c in unfiltered_cases if c.name.startswith("WMS_")]),
              ("catalog", [c for c in unfiltered_cases if c.name.startswith("WMTS_")])]
    for alias, cases in groups:
        prime = Case("prime", [wms(alias, "catalog", tile_box(1, 0, 0, 2, 2), 512, 512)], 512)
        for record in cold("opened", bench.wanted(cases), bench.who, files, bench.cold_rounds, "open", bench.dataset.folder / "product", prime):
            bench.add(record)
