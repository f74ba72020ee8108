"""A walk of a hundred million tiles of which none is drawn: seconds, and the most memory."""
import json
import pathlib
import re
import subprocess
import time

from common.servers import BUILD
from load.data import MERCATOR

CONFIG = """<mapcache>
  <cache name="tiles" type="sqlite3"><dbfile>{folder}/walk.sqlite3</dbfile></cache>
  <source name="origin" type="wms"><getmap><params><LAYERS>a</LAYERS></params></getmap><http><url>http://127.0.0.1:1/</url></http></source>
  <tileset name="walk"><source>origin</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid><format>PNG</format><metatile>1 1</metatile></tileset>
  <service type="tms" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
"""
SHARE = .3  # of the world, from west to east
LARGE, SMALL = 14, 11  # last levels: 107 and 1.7 million tiles


def most_memory(pid):
    """MB, of what the process has held so far; what its parent held before it began does not count, as it would in getrusage()."""
    found = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())
    return int(found.group(1)) / 1024 if found else 0.0


def run(config, order, last):
    box = f"{-MERCATOR},{-MERCATOR},{-MERCATOR + 2 * MERCATOR * SHARE},{MERCATOR}"
    began = time.monotonic()
    program = subprocess.Popen([BUILD / "bin" / "mapcache", "seed", "-c", config, "-t", "walk", "-z", f"0,{last}", "-e", box, "-i", order, "--dry-run", "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    memory = 0.0
    while program.poll() is None:
        memory = max(memory, most_memory(program.pid))
        time.sleep(.005)
    seconds = time.monotonic() - began
    out, err = program.communicate()
    if program.returncode != 0:
        raise RuntimeError(f"mapcache seed --dry-run: {err.decode()[-1000:]}")
    return {"order": order, "last": last, "seconds": seconds, "memory": memory, "tiles": json.loads(out.splitlines()[-1])["tiles"]}


def measure(folder, last=LARGE):
    """Both orders, of few and of many tiles: memory must not depend on how many there are."""
    config = folder / "walk.xml"
    config.write_text(CONFIG.format(folder=folder))
    return [run(config, order, level) for order in ("drill-down", "scanline") for level in (min(SMALL, last), last)]
