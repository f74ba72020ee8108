"""The configurations of the case study, as files that both servers read, and the Apache that serves them.

An alias is `catalog` and then, after a dash, any of: mt (a thread for each tile), amt (a thread for each product of a tile), qbm (dimension queries
once a map), geo (the catalogue's query filters by box). All 16 of them, plus `base-disk` and `base-sqlite`, the basemap alone.
"""
import itertools

from common.servers import BUILD, PEER_MODULE, apache

BY_KEYWORD = "keyword LIKE '%' || :dim || '%'"
BY_BOX = " AND minx &lt;= :maxx AND maxx &gt;= :minx AND miny &lt;= :maxy AND maxy &gt;= :miny"
SWITCHES = ("mt", "amt", "qbm", "geo")
MODULES = {"ours": f"{BUILD}/modules/mod_mapcache.so", "MapCache": PEER_MODULE}


def alias(*switches):
    """`catalog` with these switches, in the order of SWITCHES."""
    return "catalog" + ("-" + "".join(s for s in SWITCHES if s in switches) if switches else "")


ALIASES = {alias(*chosen): chosen for count in range(len(SWITCHES) + 1) for chosen in itertools.combinations(SWITCHES, count)}


def base_disk(data):
    return f"""
  <cache name="disk" type="disk" layout="template"><template>{data}/base/{{z}}/{{inv_y}}/{{x}}.jpg</template></cache>
  <tileset name="base"><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>JPEG</format></tileset>"""


def base_sqlite(data):
    return f"""
  <cache name="base" type="sqlite3"><dbfile>{data}/base.sqlite3</dbfile></cache>
  <tileset name="base"><cache>base</cache><grid>GoogleMapsCompatible</grid><format>JPEG</format></tileset>"""


def catalog(products, switches, catalog_file="catalog.sqlite"):
    """The tileset `catalog` over the product files of a folder."""
    where = BY_KEYWORD + (BY_BOX if "geo" in switches else "")
    threads = "<assembly_threaded_fetching>true</assembly_threaded_fetching>" if "amt" in switches else ""
    by_map = "<wms_querybymap>true</wms_querybymap>" if "qbm" in switches else ""
    return f"""
  <cache name="catalog" type="sqlite3">
    <dbfile>{products}/{{dim:product}}.sqlite3</dbfile>
    <queries><get>SELECT data FROM tiles WHERE x=:x AND y=:y AND z=:z</get></queries>
  </cache>
  <tileset name="catalog">
    <cache>catalog</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>
    <dimensions>
      <assembly_type>stack</assembly_type><store_assemblies>false</store_assemblies>{threads}
      <dimension name="product" default="%" type="sqlite">
        <dbfile>{products}/{catalog_file}</dbfile>{by_map}
        <validate_query>SELECT subtile FROM catalog WHERE {where}</validate_query>
        <list_query>SELECT DISTINCT keyword FROM catalog</list_query>
      </dimension>
    </dimensions>
  </tileset>"""


def document(body, switches=(), map_format="", extra=""):
    """A configuration file. Maps are JPEG unless `map_format` says another: requests name none, as the case study's (where clients may
    override the format, MapCache 1.14 dies of a request that names none)."""
    threads = "<threaded_fetching>true</threaded_fetching>" if "mt" in switches else ""
    of_maps = f"<format>{map_format}</format>" if map_format else ""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<mapcache>{body}
  <service type="wmts" enabled="true"/>
  <service type="wms" enabled="true">{of_maps}</service>
  {threads}{extra}
</mapcache>
"""


def write_all(folder, data, map_format=""):
    """Every configuration of the case study; alias -> file."""
    texts = {name: document(catalog(data / "product", switches) + base_disk(data), switches, map_format) for name, switches in ALIASES.items()}
    texts["base-disk"] = document(base_disk(data))
    texts["base-sqlite"] = document(base_sqlite(data))
    return write(folder, texts)


def write(folder, texts):
    files = {}
    for name, text in texts.items():
        files[name] = folder / f"{name}.xml"
        files[name].write_text(text)
    return files


def server(who, files, processes=2, log_level="warn"):
    """Apache with the module of `who` ("ours" or "MapCache") and these aliases. Its readiness is asked at a path that is no alias."""
    lines = [f'LoadModule mapcache_module "{MODULES[who]}"', "KeepAliveTimeout 120", "EnableSendfile On"]
    lines += [f'MapCacheAlias /{name} "{path}"' for name, path in files.items()]
    return apache(f"catalog-{'ours' if who == 'ours' else 'peer'}", "\n".join(lines), "/none", processes=processes, log_level=log_level)
