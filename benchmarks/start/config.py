"""A configuration of a thousand tilesets in a hundred lines each, of every store that may be on another machine, none of which has to be there."""
import random

NOWHERE = "store.invalid"  # no such host (RFC 6761): whoever asks for it fails
WORDS = "aerial base coast cover depth field flood forest geology ground height hydro land parcel relief road soil urban water zone".split()
CACHES = {
    "sqlite3": "<dbfile>{folder}/{{tileset}}/{{grid}}.sqlite3</dbfile>",
    "disk": "<base>{folder}/disk</base>",
    "bdb": "<base>{folder}/{name}</base>",
    "lmdb": "<base>{folder}/{name}</base>",
    "redis": "<host>{nowhere}</host>\n    <password>secret</password>",
    "memcache": "<server><host>{nowhere}</host><port>11211</port></server>",
    "postgresql": "<connection>host={nowhere} dbname=tiles</connection>",
    "s3": "<url>https://s3.{nowhere}/tiles/{{tileset}}/{{grid}}/{{dim}}/{{z}}/{{x}}/{{y}}.{{ext}}</url>\n    <id>id</id>\n    <secret>secret</secret>\n    <region>eu-west-1</region>",
    "rest": "<url>http://{nowhere}/{{tileset}}/{{grid}}/{{dim}}/{{z}}/{{x}}/{{y}}.{{ext}}</url>",
}
GRID_LEVELS = 18


def grid(number):
    lines = [f'<grid name="grid{number}">', f"  <metadata><title>Grid {number}</title></metadata>", "  <srs>EPSG:3857</srs>", "  <units>m</units>",
             "  <extent>-20037508.3427892480 -20037508.3427892480 20037508.3427892480 20037508.3427892480</extent>", "  <size>256 256</size>",
             "  <resolutions>", *(f"    {156543.0339280410 / 2 ** level * (1 - number / 1000):.10f}" for level in range(GRID_LEVELS)), "  </resolutions>", "</grid>"]
    return lines


def source(name, words):
    return [f'<source name="{name}" type="wms">', "  <getmap>", "    <params>", "      <FORMAT>image/png</FORMAT>", f"      <LAYERS>{','.join(words)}</LAYERS>",
            "      <TRANSPARENT>true</TRANSPARENT>", "      <MAP>/srv/maps/all.map</MAP>", "    </params>", "  </getmap>",
            "  <getfeatureinfo>", "    <info_formats>text/plain,application/vnd.ogc.gml</info_formats>", "    <params>", f"      <QUERY_LAYERS>{words[0]}</QUERY_LAYERS>",
            "    </params>", "  </getfeatureinfo>", "  <http>", f"    <url>http://{NOWHERE}/wms</url>", "    <connection_timeout>10</connection_timeout>", "    <timeout>60</timeout>",
            "  </http>", "</source>"]


def cache(name, kind, folder):
    text = CACHES[kind].format(folder=folder, name=name, nowhere=NOWHERE)
    return [f'<cache name="{name}" type="{kind}">', *text.split("\n"), "</cache>"]


def tileset(name, number, words, grids, chance):
    west, south = chance.uniform(-170, 150), chance.uniform(-75, 60)
    lines = [f'<tileset name="{name}">', f"  <source>{name}</source>", f"  <cache>cache{number % CACHE_COUNT}</cache>",
             *(f"  <grid>grid{g}</grid>" for g in grids[1:]), f'  <grid restricted_extent="{west * 1e5:.3f} {south * 1e5:.3f} {west * 1e5 + 3e6:.3f} {south * 1e5 + 2e6:.3f}">grid{grids[0]}</grid>',
             "  <format>PNG</format>", "  <metatile>5 5</metatile>", "  <metabuffer>10</metabuffer>", "  <expires>3600</expires>", "  <auto_expire>86400</auto_expire>",
             "  <metadata>", f"    <title>{' '.join(words).title()} {number}</title>", f"    <abstract>{' '.join(chance.choices(WORDS, k=30))}.</abstract>",
             "    <keywords>", *(f"      <keyword>{word}</keyword>" for word in chance.sample(WORDS, 6)), "    </keywords>",
             f"    <wgs84boundingbox>{west:.6f} {south:.6f} {west + 20:.6f} {south + 15:.6f}</wgs84boundingbox>", "  </metadata>",
             "  <dimensions>", '    <dimension type="values" name="season" default="summer">',
             *(f"      <value>{season}</value>" for season in ("spring", "summer", "autumn", "winter")), "    </dimension>",
             '    <dimension type="values" name="year" default="2020">', "    </dimension>", "  </dimensions>", "</tileset>"]
    return lines


CACHE_COUNT = 100


def configuration(folder, tilesets=1000, lines=100_000, seed=1):
    """The text of mapcache.xml: as many lines as asked for, in which the years of the dimension `year` make up what is missing."""
    chance = random.Random(seed)
    kinds = list(CACHES)
    head = ["<mapcache>", "<metadata><title>A thousand layers</title><url>http://localhost/</url></metadata>"]
    for number in range(50):
        head += grid(number)
    for number in range(CACHE_COUNT):
        head += cache(f"cache{number}", kinds[number % len(kinds)] if number % 3 == 0 else ("redis", "s3", "disk")[number % 3], folder)
    foot = ['<service type="wms" enabled="true"/>', '<service type="wmts" enabled="true"/>', '<service type="tms" enabled="true"/>', '<service type="demo" enabled="true"/>',
            "<log_level>notice</log_level>", f"<lock_dir>{folder}-locks</lock_dir>", "</mapcache>"]
    parts = []
    for number in range(tilesets):
        words = chance.sample(WORDS, 3)
        name = f"{'-'.join(words)}-{number}"
        parts.append((source(name, words), tileset(name, number, words, chance.sample(range(50), 3), chance)))
    written = len(head) + len(foot) + sum(len(one) + len(other) for one, other in parts)
    body = []
    for number, (one, other) in enumerate(parts):
        years = max(1, (lines - written) // tilesets + (number < (lines - written) % tilesets))
        at = len(other) - 3
        body += one + other[:at] + [f"      <value>{2020 - year}</value>" for year in range(years)] + other[at:]
    return "\n".join(head + body + foot) + "\n"


if __name__ == "__main__":
    import sys
    sys.stdout.write(configuration(sys.argv[1] if len(sys.argv) > 1 else "/var/cache/mapcache"))
