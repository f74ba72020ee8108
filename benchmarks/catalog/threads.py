"""What the worker threads bring: a cold map on idle cores, and throughput when all cores are busy. Only our own server has this switch."""
import contextlib

from catalog import config, requests
from catalog.measure import alternate, cold, running
from catalog.requests import Case, RandomMaps, tile_box, wms
from common.servers import wrk

VARIANTS = {"the default": "", "no workers": "<workers>0</workers>", "one worker": "<workers>1</workers>"}
CLIENTS = 16


def variant_files(bench):
    """Variant -> its own configuration under the same alias, so that the requests are the same."""
    out = {}
    for variant, extra in VARIANTS.items():
        folder = bench.config_folder / variant.replace(" ", "-")
        folder.mkdir(exist_ok=True)
        text = config.document(config.catalog(bench.dataset.folder / "product", ("geo",)), extra=extra)
        out[variant] = config.write(folder, {"catalog-geo": text})
    return out


def cold_maps(bench, files):
    """The deepest map, cold with its files open, with each number of workers; more rounds than elsewhere, since two medians are divided."""
    zoom, column, row = bench.windows[-1]
    prime = Case("prime", [wms("catalog-geo", "catalog", tile_box(zoom, column, row, 4, 4), 512, 512)], 512)
    for turn in range(bench.cold_rounds * 3):
        for variant in alternate(list(files), turn):
            case = requests.wms_1024("catalog-geo", zoom, column, row)
            record = cold("threads", [case], ["ours"], files[variant], 1, "open", bench.dataset.folder / "product", prime)[0]
            figures = record["servers"].get("ours")
            if figures:
                bench.figure("threads", f"{case.name}, cold, {variant}", "ours", "ms", figures["p50"])
            else:
                bench.failure("threads", f"{case.name}, cold, {variant}", "ours", record["errors"]["ours"])


def path_list(bench):
    """Random maps as JPEG, one path a line: more than fit in a few rounds of the memory cache's favourites."""
    out = bench.config_folder / "random-maps.txt"
    maps = RandomMaps(bench.dataset, seed=11)
    paths = []
    for number in range(400):
        _, box, width, height = maps.aligned() if number % 2 else maps.resampled()
        paths.append(wms("catalog-geo", "catalog", box, width, height))
    out.write_text("\n".join(paths) + "\n")
    return out


def throughput(bench, files):
    """Random maps from 16 clients at once, with each number of workers, in turn."""
    paths = path_list(bench)
    with contextlib.ExitStack() as stack:
        runs = {variant: stack.enter_context(running("ours", files[variant])) for variant in files}
        for turn in range(bench.cold_rounds):
            for variant in alternate(list(runs), turn):
                run = runs[variant]
                result = wrk(f"http://127.0.0.1:{run.client.port}", paths, bench.load_seconds, CLIENTS)
                bench.figure("threads", f"random maps, {CLIENTS} clients, {variant}", "ours", "requests/s", result["rps"])
                if result["errors"]:
                    bench.failure("threads", f"random maps, {CLIENTS} clients, {variant}", "ours", f"{result['errors']:.0f} failed connections")


def threads(bench):
    """A cold map on idle cores and throughput at 16 clients, with the default number of workers, none and one."""
    if "ours" not in bench.who:
        return
    files = variant_files(bench)
    cold_maps(bench, files)
    throughput(bench, files)
