"""Overviews for our vector tiles, built before the tiles are asked for."""
import json
import os
import subprocess
import time

from common.servers import BUILD, cpu_seconds

PROGRAM = BUILD / "bin" / "mapcache"
ROW = "ours, overviews"  # the only server that reads them (config.LEVELED_FEATURES)


def run(*words):
    done = subprocess.run([PROGRAM, "overviews", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"mapcache overviews {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def build(world, path, table):
    """What the builder says and takes: processor seconds of builder and database, seconds until it is done; MB of the table with its indexes; and the levels, each with the levels of tiles it serves."""
    words, database = ("-c", path, "-t", f"{table}-overviews"), world.database
    before, begin = (os.times(), cpu_seconds(database.pids())), time.monotonic()
    said = run("build", *words, "--static")
    seconds, after = time.monotonic() - begin, (os.times(), cpu_seconds(database.pids()))
    found = [level for level in map(json.loads, run("list", *words, "--json").splitlines()) if level["levels"] > 0]  # 0: none was worth its room
    if unused := [level for level in found if not level["used"]]:
        raise SystemExit(f"overviews that are not used: {unused}")
    size = int(database.sql(f"SELECT pg_total_relation_size('{table}')")[0]) / 1e6
    return {"set": table, "said": said.splitlines(), "builder": sum(after[0][2:4]) - sum(before[0][2:4]), "database": after[1] - before[1], "seconds": seconds,
            "table": size, "levels": found}
