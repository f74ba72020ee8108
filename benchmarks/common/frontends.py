"""How map servers are reached: ours and Debian's MapServer, each as an Apache module or under mod_fcgid, as FastCGI behind nginx, and as plain CGI.

Each function gives a server that is not started yet (a context manager); maps are asked for at its `url`, to which a query is added.
"""
import os
import pathlib
import shutil

from common.servers import BUILD, HTTPD_MODULES, apache, make_folder, nginx_fastcgi

MAPSERVER = "/usr/bin/mapserv"
OURS_CGI = BUILD / "bin" / "mapcache.fcgi"
CGI_CHILDREN = 100  # as many programs at once as there are users
PROCESS = {"processes": 1, "threads": 128}  # Apache with threads: more than there are users, of one process, so that all of them wait in one queue


def module(name, config):
    """Our Apache module on a configuration file."""
    return apache(name, f'LoadModule mapcache_module "{BUILD}/modules/mod_mapcache.so"\nMapCacheAlias /mc "{config}"', "/mc", **PROCESS)


def fastcgi(name, config):
    """Our FastCGI program, behind nginx."""
    return nginx_fastcgi(name, [str(OURS_CGI)], "/mc", {"MAPCACHE_CONFIG_FILE": str(config)})


def cgi_lines(program, path, environment):
    """Of a configuration that runs a program for each request."""
    lines = [f"LoadModule {m}_module {HTTPD_MODULES}/mod_{m}.so" for m in ("alias", "env", "cgi")]
    lines += [f'SetEnv {key} "{value}"' for key, value in environment.items()]
    return "\n".join(lines + [f'ScriptAlias {path} "{program}"', f'<Directory "{pathlib.Path(program).parent}">', "Require all granted", "</Directory>"])


def cgi(name, config):
    """Our program, started by Apache for each request."""
    return apache(name, cgi_lines(OURS_CGI, "/mc", {"MAPCACHE_CONFIG_FILE": config}), "/mc", mpm="prefork", processes=CGI_CHILDREN)


def mapserver_settings(mapfiles):
    """MapServer's own configuration file: which map files it may read."""
    path = pathlib.Path(mapfiles) / "mapserver.conf"
    path.write_text(f'CONFIG\n  ENV\n    "MS_MAP_PATTERN" "^{mapfiles}/"\n  END\nEND\n')
    return {"MAPSERVER_CONFIG_FILE": str(path)}


def mapserver_fcgid(name, mapfiles, processes):
    """MapServer under mod_fcgid, which starts and keeps so many processes of it."""
    folder = make_folder(f"{name}-fcgid")
    for part in ("sockets", "bin"):
        (folder / part).mkdir()
    (folder / "sockets").chmod(0o777)
    shutil.copy(MAPSERVER, folder / "bin" / "mapserv")  # in a folder with a handler of its own
    lines = [f"LoadModule {m}_module {HTTPD_MODULES}/mod_{m}.so" for m in ("alias", "env", "fcgid")]
    lines += [f"FcgidInitialEnv {key} {value}" for key, value in mapserver_settings(mapfiles).items()]
    lines += [f"FcgidIPCDir {folder}/sockets", f"FcgidProcessTableFile {folder}/sockets/table", f"FcgidMaxProcesses {processes}",
              f"FcgidMaxProcessesPerClass {processes}", f"FcgidMinProcessesPerClass {min(processes, 3)}", "FcgidMaxRequestsPerProcess 0", "FcgidIdleTimeout 3600",
              "FcgidProcessLifeTime 0", "FcgidSpawnScoreUpLimit 100000", "FcgidConnectTimeout 60", "FcgidIOTimeout 120", "FcgidBusyTimeout 300",
              f"ScriptAlias /mapserv {folder}/bin/mapserv", f"<Directory {folder}/bin>", "Require all granted", "Options +ExecCGI",
              "SetHandler fcgid-script", "</Directory>"]
    return apache(name, "\n".join(lines), "/mapserv", **PROCESS)


def mapserver_fastcgi(name, mapfiles, processes=2, connections=1024):
    """So many processes of MapServer behind nginx, whose queue is the socket's. Told to end, they wait for one more request."""
    settings = mapserver_settings(mapfiles)
    return nginx_fastcgi(name, [MAPSERVER], "/mapserv", dict(os.environ, **settings), workers=processes, params=settings, keep=False, patience=1,
                         connections=connections)


def mapserver_cgi(name, mapfiles):
    """MapServer, started by Apache for each request."""
    return apache(name, cgi_lines(MAPSERVER, "/mapserv", mapserver_settings(mapfiles)), "/mapserv", mpm="prefork", processes=CGI_CHILDREN)


def port_of(server):
    return int(server.url.rsplit(":", 1)[1].split("/")[0])
