/* The table of commands: the program, its help, its manual pages and its completion come from these rows. */
#include "commands.h"

static const mc_cli_option no_rows[] = { MC_OPTION_END };
static const mc_cli_option_table no_options = { no_rows, 0, NULL };

#define PLAIN_STATUSES "0 done\n1 an error"
#define OVERVIEWS_STATUSES                                                                                             \
    "0 done\n1 an error: the overviews are as they were\n2 interrupted: the overviews are as they were"
#define CUBE_STATUSES                                                                                                  \
    "0 all is stored\n1 an error\n2 interrupted: what is stored is right; run it again\n"                              \
    "3 images were left out, each named with its reason, and with it the others of its time"
#define JOBS_ROW(name_, summary_, synopsis_, mask_, argument_, about_, ...)                                            \
    {                                                                                                                  \
        .name = "jobs " name_, .summary = summary_, .synopsis = synopsis_, .table = &mc_jobs_option_table,             \
        .run = mc_command_jobs, .check = mc_check_jobs_options, .mask = mask_, .argument = argument_, .about = about_, \
        .statuses = PLAIN_STATUSES, .page = "jobs.md", .also = "mapcache-seed(1)", .examples = __VA_ARGS__             \
    }
#define CUBE_ROW(name_, summary_, synopsis_, mask_, argument_, about_, statuses_, ...)                                 \
    {                                                                                                                  \
        .name = "cube " name_, .summary = summary_, .synopsis = synopsis_, .table = &mc_cube_option_table,             \
        .run = mc_command_cube, .check = mc_check_cube_options, .mask = mask_, .argument = argument_, .about = about_, \
        .statuses = statuses_, .page = "datacube.md", .also = "mapcache.xml(5)", .examples = __VA_ARGS__               \
    }

const mc_cli_command mc_cli_commands[] = {
    { "serve", "show a file, a folder or a database as maps, at once", "THING ... [OPTIONS]", &mc_serve_option_table,
      mc_command_serve, mc_check_serve_options, .argument = "THING", .topic = "Begin",
      .about =
          "Looks what the things hold, runs Apache or nginx with a configuration for them, and prints the address\n"
          "of the maps. A THING is a raster that GDAL reads, an MBTiles, a PMTiles, a GeoPackage, a SQLite cache,\n"
          "a shapefile, a GeoJSON, an MRF, Esri's bundles, a ROK4 pyramid, an http:// address of one of them,\n"
          "a postgresql:// address, a folder of files, a map file of MapServer, or a mapcache.xml.\n"
          "The server listens on this machine alone, reads nothing of the system's configuration, and ends with\n"
          "this program, on Ctrl-C. A changed or a new file shows within a few seconds.",
      .statuses = "0 it was ended by a signal\n1 an error", .also = "mapcache-check(1) mapcache.xml(5)",
      .examples = "mapcache serve world.tif\na raster on http://127.0.0.1:8080/\n"
                  "mapcache serve data/ --open\neverything in a folder, and a browser that shows it\n"
                  "mapcache serve postgresql://localhost/gis --save mapcache.xml\nthe tables of a database; the "
                  "configuration is kept\n"
                  "mapcache serve /etc/mapcache/mapcache.xml --nginx --port 9000\na configuration, behind nginx",
      .page = "serve.md" },
    { "adopt", "write a configuration from that of another server", "FILE ... [OPTIONS]", &mc_adopt_option_table,
      mc_command_adopt, mc_check_adopt_options, .argument = "FILE",
      .about =
          "Reads the configuration of another server and writes a mapcache.xml that serves the same layers from\n"
          "the same stored tiles. What could not be taken over is named with file and line, and with what to do;\n"
          "the same list stands in the file. A FILE is a mapproxy.yaml or seed.yaml of MapProxy, a renderd.conf, a\n"
          "map file of MapServer, a geowebcache.xml, or the data directory of GeoServer.\n"
          "With --compare the other server is asked at URL for its capabilities, for 20 tiles and for 20 maps, and "
          "the\n"
          "new configuration for the same. A page of HTML has the pictures beside each other. URL is the address of\n"
          "MapProxy, of GeoWebCache, of the web server with mod_tile, or of mapserv with its parameter map.",
      .statuses =
          "0 all was taken over\n1 nothing was written\n2 the file was written; some things were not taken over\n"
          "3 with --compare: the servers differ, or could not be compared",
      .also = "mapcache-check(1) mapcache-serve(1) mapcache.xml(5)",
      .examples = "mapcache adopt /etc/mapproxy/mapproxy.yaml\nwrites mapcache.xml\n"
                  "mapcache adopt /etc/renderd.conf --output tiles.xml\nserves the metatiles of renderd\n"
                  "mapcache adopt mapproxy.yaml --compare http://127.0.0.1:8080\na page shows whether the maps are the "
                  "same",
      .page = "adopt.md" },
    { "check", "say what is wrong with a configuration", "[OPTIONS] FILE", &mc_check_option_table, mc_command_check,
      .argument = "FILE", .about = "Reads a configuration as a server would and prints what is wrong with it.",
      .statuses = "0 nothing is wrong\n1 the file would not be served\n"
                  "2 the file would be served, with warnings or without some of its items",
      .also = "mapcache.xml(5)",
      .examples = "mapcache check /etc/mapcache/mapcache.xml\nsays what is wrong, with file, line and column\n"
                  "mapcache check --json --connect mapcache.xml\none object of JSON; the databases are asked, too",
      .page = "operations.md" },
    { "seed", "fill, refresh, empty or copy a tileset", "-c FILE -t TILESET [OPTIONS]", &mc_seed_option_table,
      mc_command_seed, mc_check_seed_options, .topic = "Fill stores",
      .about =
          "Draws the tiles of an area and stores them before clients ask. Tiles that are stored stay as they are,\n"
          "unless --older or --force says otherwise. --mode delete removes tiles, --mode transfer copies them to\n"
          "another tileset.",
      .statuses = "0 done, or nothing to do; also after fewer failures than --percent, and after one interrupt\n"
                  "1 wrong options or configuration; more failures than --percent; a checkpoint that cannot be used; "
                  "a worker process that died\n"
                  "2 interrupted twice\n"
                  "3 done, but some lines of --list are no tiles",
      .drop_in =
          "The program mapcache_seed has the options, the lines and the exit statuses of MapCache's program. It\n"
          "prints what is wrong with its options to standard output, and the list of options behind it.",
      .also = "mapcache_seed(1) mapcache-purge(1) mapcache-jobs(1) mapcache.xml(5)",
      .examples =
          "mapcache seed -c mapcache.xml -t world -z 0,8 -n 4\nlevels 0 to 8 with four threads\n"
          "mapcache seed -c mapcache.xml -t world -z 9,14 --area france.geojson -n 4\nonly where the area is\n"
          "mapcache seed -c mapcache.xml -t world -z 0,14 --checkpoint place --resume\ngoes on where a run ended\n"
          "mapcache seed -c mapcache.xml -t world -z 0,14 --dry-run\nhow many tiles that would be, level by level",
      .page = "seeding.md" },
    { "copy", "copy tiles to another tileset, cache or file", "--from NAME --to NAME [OPTIONS]", &mc_copy_option_table,
      mc_command_copy, mc_check_copy_options,
      .about =
          "Copies tiles as they are stored from a tileset, a cache or a file to another one, where both grids have\n"
          "the same tiles; --warp draws those of another grid from them. Tiles that the target has stay, unless\n"
          "--force says otherwise. A file is opened by its path, and made where it is missing. Where a store cannot\n"
          "list its tiles, --zoom names the levels.",
      .statuses = "0 all is copied; with --verify, and equal\n"
                  "1 an error, wrong options or configuration, or blocks that could not be copied\n"
                  "2 interrupted\n"
                  "3 done, but some lines of --list are no tiles\n"
                  "4 --verify has found tiles that differ, each block told with its first one",
      .also = "mapcache-seed(1) mapcache-compact(1) mapcache.xml(5)",
      .examples =
          "mapcache copy -c mapcache.xml --from world --to world.pmtiles --verify\na tileset into one file\n"
          "mapcache copy -c mapcache.xml --from disk --to s3 -z 0,12 -n 4\nall tilesets of a cache into another cache\n"
          "mapcache copy --from old.mbtiles --to new.gpkg\nfrom file to file\n"
          "mapcache copy -c mapcache.xml --from degrees --to web.mbtiles --warp GoogleMapsCompatible -z 0,8\n"
          "onto a grid with other tiles\n"
          "mapcache copy -c mapcache.xml --from old --to new --checkpoint place --resume\ngoes on where a run ended",
      .page = "seeding.md" },
    { "jobs", "share seeding between any number of hosts", "COMMAND -c FILE [OPTIONS]", &no_options,
      .about = "A queue of seeding jobs in PostgreSQL. A job is put into the queue once; workers on any number of\n"
               "hosts share the job, and each of its metatiles is drawn once.",
      .page = "jobs.md" },
    JOBS_ROW("enqueue", "add a job", "-c FILE -t TILESET [OPTIONS]", MC_JOBS_ENQUEUE, NULL,
             "Puts a job into the queue and prints the number of the job. The same --request adds a job only once.",
             "mapcache jobs enqueue -c mapcache.xml -t world -z 0,14\nprints the number of the job"),
    JOBS_ROW("work", "lease units and work on them, until interrupted", "-c FILE [OPTIONS]", MC_JOBS_WORK, NULL,
             "Leases units of the job with the highest priority, draws and stores their tiles, and takes the next\n"
             "units. An interrupt gives back what is not finished. With -p the death of a process is an error.",
             "mapcache jobs work -c mapcache.xml -n 4 --drain\nworks with four threads until no open job is left"),
    JOBS_ROW("list", "list the newest jobs", "-c FILE [OPTIONS]", MC_JOBS_LIST, NULL,
             "Prints a line for each job, the newest first: state, progress, workers.",
             "mapcache jobs list -c mapcache.xml --state open\njobs that are not done"),
    JOBS_ROW("show", "show one job with its leased, returned and failed units", "-c FILE JOB [OPTIONS]", MC_JOBS_SHOW,
             "JOB", "Prints a job and those of its units that are leased, given back or failed, with their messages.",
             "mapcache jobs show -c mapcache.xml 17\njob 17 with the messages of its failed units"),
    JOBS_ROW("watch", "follow open jobs until they are done", "-c FILE [JOB ...] [OPTIONS]", MC_JOBS_WATCH, "JOB",
             "Prints the progress of the jobs, or of all open jobs, until none of them is open.",
             "mapcache jobs watch -c mapcache.xml 17\nends when job 17 has ended"),
    JOBS_ROW("cancel", "end jobs; what is stored stays", "-c FILE JOB ... [OPTIONS]", MC_JOBS_CHANGE, "JOB",
             "Ends jobs before they are done. Tiles that are stored stay. Workers hear of it within two seconds.",
             "mapcache jobs cancel -c mapcache.xml 17\nwhat job 17 has stored stays"),
    JOBS_ROW("pause", "hand out nothing more of jobs for now", "-c FILE JOB ... [OPTIONS]", MC_JOBS_CHANGE, "JOB",
             "Hands out no more units of the jobs, until they are resumed. Workers hear of it within two seconds.",
             "mapcache jobs pause -c mapcache.xml --all\nnothing more is handed out"),
    JOBS_ROW("resume", "go on with paused jobs", "-c FILE JOB ... [OPTIONS]", MC_JOBS_CHANGE, "JOB",
             "Hands out units of paused jobs again.", "mapcache jobs resume -c mapcache.xml 17\njob 17 goes on"),
    JOBS_ROW("retry", "try failed units of jobs again", "-c FILE JOB ... [OPTIONS]", MC_JOBS_CHANGE, "JOB",
             "Hands out the failed units of the jobs again. Only the metatiles that failed are drawn.",
             "mapcache jobs retry -c mapcache.xml 17\nfailed units of job 17 are handed out again"),
    JOBS_ROW("prune", "remove jobs that are done or cancelled", "-c FILE [OPTIONS]", MC_JOBS_PRUNE, NULL,
             "Removes jobs that ended some time ago from the queue, and workers that are silent for as long.",
             "mapcache jobs prune -c mapcache.xml --age 86400\nremoves jobs that ended more than a day ago"),
    { "ingest", "make tiles of georeferenced images", "-c FILE -t TILESET [OPTIONS] IMAGE ...", &mc_ingest_option_table,
      mc_command_ingest, mc_check_ingest_options, .argument = "IMAGE",
      .about = "Makes tiles of georeferenced images: PNG and JPEG with world files, TIFF with GeoTIFF tags or a world\n"
               "file. Where images overlap, the later one is on top. What is stored already stays where no image has\n"
               "data. The last line of --json has the exit status, too.",
      .statuses = "0 all is stored\n1 an error\n2 interrupted: what is stored is right; run it again\n"
                  "3 bad images were passed over",
      .also = "mapcache-cube(1) mapcache.xml(5)",
      .examples = "mapcache ingest -c mapcache.xml -t photos images/*.tif\ntiles of all levels from the images\n"
                  "mapcache ingest -c mapcache.xml -t photos --list images.txt --dry-run\nsays what would be made",
      .page = "ingest.md" },
    { "cube", "store images of many dates in a data cube, or list its dates", "COMMAND", &no_options,
      .about = "A data cube holds images of one area at many dates. These commands store images in a cube that a\n"
               "configuration names, list the dates, and make the overviews.",
      .page = "datacube.md" },
    CUBE_ROW(
        "ingest", "store images, each at its time", "-c FILE --cube NAME [OPTIONS] IMAGE ...", MC_CUBE_INGEST, "IMAGE",
        "Stores images (PNG and JPEG with world files, TIFF with GeoTIFF tags or a world file) in a cube, each at\n"
        "its time. Images of one time are a mosaic: where they overlap, the later one is on top. A time that the\n"
        "cube has already is corrected where the images lie.",
        CUBE_STATUSES,
        "mapcache cube ingest -c mapcache.xml --cube sentinel --time S2_%Y%m%d S2_*.tif\nthe time of each image stands "
        "in its name"),
    CUBE_ROW("dates", "list the times of a cube", "-c FILE --cube NAME [--json]", MC_CUBE_DATES, "IMAGE",
             "Prints the times of the images of a cube, the earliest first, one on a line.", PLAIN_STATUSES,
             "mapcache cube dates -c mapcache.xml --cube sentinel\none time on a line"),
    CUBE_ROW("overviews", "make the overviews that are configured", "-c FILE --cube NAME [OPTIONS]", MC_CUBE_OVERVIEWS,
             "IMAGE", "Makes the overviews of a cube that was stored with another number of them.",
             "0 all overviews are stored\n1 an error\n2 interrupted: what is stored is right; run it again",
             "mapcache cube overviews -c mapcache.xml --cube sentinel\nafter the number of overviews was changed"),
    { "detail", "count the tiles that stores hold of an area", "-c FILE -t TILESET [OPTIONS]", &mc_detail_option_table,
      mc_command_detail, mc_check_detail_options, .topic = "Look after stores",
      .about =
          "Counts the tiles that the stores of a tileset hold, level by level. On a terminal the table has bars. All\n"
          "levels are counted unless --zoom names some; of a store of very many files the deepest ones are not,\n"
          "and the report says so. --json is the report of MapCache's program, file by file.",
      .statuses = PLAIN_STATUSES,
      .drop_in =
          "The program mapcache_detail has the options, the output and the exit statuses of MapCache's program: -q is\n"
          "--query, -o is --short-output, the output is JSON, and level 0 is counted unless --zoom names others. It\n"
          "looks into SQLite files only, and has no --stores.",
      .also = "mapcache_detail(1) mapcache-purge(1) mapcache-compact(1)",
      .examples = "mapcache detail -c mapcache.xml -t world -g WGS84\na table with a line for each level\n"
                  "mapcache detail -c mapcache.xml -t world -g WGS84 -z 0,9 --json\nthe report of mapcache_detail, "
                  "file by file",
      .page = "operations.md" },
    { "purge", "delete tiles of a tileset", "-c FILE -t TILESET [OPTIONS]", &mc_purge_option_table, mc_command_purge,
      mc_check_purge_options,
      .about = "Deletes tiles of a tileset from all of its stores: all grids and all values of dimensions, unless\n"
               "options name some. On a terminal the command says what it would delete, and asks; elsewhere it needs\n"
               "--yes. Servers and seeders may use the stores meanwhile. `mapcache compact` gives back the room.",
      .statuses = "0 deleted, or nothing to delete\n1 an error, or not confirmed\n"
                  "2 interrupted, or a store could not be changed: run it again",
      .also = "mapcache-seed(1) mapcache-compact(1) mapcache-detail(1)",
      .examples = "mapcache purge -c mapcache.xml -t world --dry-run\nsays what would be deleted, level by level\n"
                  "mapcache purge -c mapcache.xml -t world -z 12,18 --yes\ndeletes levels 12 to 18 without asking\n"
                  "mapcache purge -c mapcache.xml -t world --area france.geojson --older 30d\n"
                  "deletes old tiles of an area\n"
                  "mapcache purge -c mapcache.xml -t weather -D time=2024-01-01\ndeletes the tiles of one time",
      .page = "seeding.md" },
    { "invalidate", "tell servers which tiles have changed", "--sql|--expire-list ...", &mc_invalidate_option_table,
      mc_command_invalidate, mc_check_invalidate_options, .argument = "TABLE",
      .about =
          "Prints SQL for psql: a log of changed boxes, and triggers that write into the log whenever rows of the\n"
          "tables change. Servers with <changes> in their configuration follow the log, and draw the tiles anew\n"
          "that show the boxes. The SQL may be run again at any time; it needs PostgreSQL 13 with PostGIS.\n"
          "It is one transaction: where a statement fails, nothing is changed, and psql with -v ON_ERROR_STOP=1\n"
          "ends with status 3. Without that, psql ends with 0 whatever happens.\n\n"
          "With --expire-list, marks the stored tiles as old that an expire list of osm2pgsql or imposm names, on all\n"
          "levels and in all tilesets that are drawn: servers show them until they have drawn new ones.",
      .statuses = "0 printed, or marked\n1 a wrong option or configuration\n2 lines of the list are broken, or a "
                  "store could not be changed",
      .also = "mapcache.xml(5) mapcache-purge(1)",
      .examples =
          "mapcache invalidate --sql public.roads | psql -v ON_ERROR_STOP=1 gis\nchanges of one table are logged from "
          "now on\n"
          "mapcache invalidate --sql -c mapcache.xml | psql -v ON_ERROR_STOP=1 gis\nall tables that the configuration "
          "shows\n"
          "mapcache invalidate --sql --drop public.roads | psql -v ON_ERROR_STOP=1 gis\nthe table has no triggers any "
          "more\n"
          "mapcache invalidate --expire-list expired.txt -c mapcache.xml -z 10,18\nstored tiles of ten levels are "
          "marked",
      .page = "changes.md" },
    { "compact", "give back what stores do not need any more", "-c FILE [OPTIONS]", &mc_compact_option_table,
      mc_command_compact,
      .about = "Gives back what stores of tiles do not need any more: free pages of SQLite, MBTiles and GeoPackage\n"
               "files, dead rows of PostgreSQL tables, drafts beside PMTiles archives. Servers and seeders may use "
               "them meanwhile.",
      .statuses = "0 done\n1 a wrong option or configuration\n2 a store could not be compacted",
      .also = "mapcache-detail(1) mapcache.xml(5)",
      .examples = "mapcache compact -c mapcache.xml --dry-run\nsays how much each store could give back\n"
                  "mapcache compact -c mapcache.xml -C tiles --orphans\nalso removes tiles that the configuration no "
                  "longer knows",
      .page = "operations.md" },
    { "doctor", "say what machine, databases and stores would do better", "-c FILE [OPTIONS]", &mc_doctor_option_table,
      mc_command_doctor, mc_check_doctor_options,
      .about = "Looks at the machine, PostgreSQL, the stores and the configuration, and says what to change, why, and\n"
               "by how much. Nothing is changed: transactions are read-only, and no table is read from end to end.",
      .statuses = "0 nothing to do\n1 an error\n2 something is to be done\n3 nothing was found, but not all could be "
                  "checked",
      .also = "mapcache-check(1) mapcache.xml(5)",
      .examples = "mapcache doctor -c mapcache.xml --processes 8\nwhat would do better, the largest gain first\n"
                  "mapcache doctor -c mapcache.xml --access-log /var/log/apache2/access.log\nand how large "
                  "<memory_cache> should be\n"
                  "mapcache doctor -c mapcache.xml --fix fix.sh\nand a script that does it, to be read first",
      .page = "doctor.md" },
    { "index", "write the spatial index of shapefiles", "FILE.shp ...", &mc_index_option_table, mc_command_index,
      .argument = "FILE.shp", .topic = "Data and logs",
      .about = "Writes the spatial index of each shapefile (FILE.qix, as MapServer, GDAL and QGIS have it): under "
               "another\nname first, so that whoever reads meanwhile has the old one or the new one.",
      .statuses = "0 all indexes were written\n1 an index was not written", .also = "mapcache.xml(5)",
      .examples = "mapcache index roads.shp rivers.shp\nwrites roads.qix and rivers.qix", .page = "drawing.md" },
    { "overviews", "make maps of whole tables fast", "COMMAND", &no_options,
      .about = "Overviews are tables and files that maps of whole tables of PostGIS and of whole shapefiles are read\n"
               "from: they hold what can be seen at a resolution. These commands build them, bring them up to date,\n"
               "list them, and drop them.",
      .page = "overviews.md" },
    { "overviews build", "build what maps of whole tables are read from", "-c FILE -t TILESET [OPTIONS]",
      &mc_overviews_option_table, mc_command_overviews, mc_check_overviews_options, .mask = MC_OVERVIEWS_BUILD,
      .about =
          "Makes overviews of the tables of PostGIS and of the shapefiles that the maps of a tileset show: for each\n"
          "resolution the features that can be seen there, in a table beside the table or a file beside the\n"
          "shapefile. Maps of whole tables are then read from them. A table needs the triggers of the change log\n"
          "(mapcache invalidate), or --static; a shapefile needs neither. Whoever draws meanwhile has the old\n"
          "overviews or the new ones.",
      .statuses = OVERVIEWS_STATUSES, .also = "mapcache-invalidate(1) mapcache.xml(5)",
      .examples = "mapcache overviews build -c mapcache.xml -t roads\nthe tables that the tileset roads shows\n"
                  "mapcache overviews build -c mapcache.xml -t relief --static\na table that does not change",
      .page = "overviews.md" },
    { "overviews update", "bring up to date what maps of whole tables are read from", "-c FILE -t TILESET [OPTIONS]",
      &mc_overviews_option_table, mc_command_overviews, mc_check_overviews_options, .mask = MC_OVERVIEWS_UPDATE,
      .about = "Brings the overviews of the tables of PostGIS that the maps of a tileset show up to date where the\n"
               "tables have changed, as the change log says; servers with <changes> do so by themselves. Where\n"
               "that is not enough (much of a table has changed, its columns have, the log has forgotten changes),\n"
               "overviews are built anew, and those of shapefiles always are. Those of other styles alone are left\n"
               "as they are. Whoever draws meanwhile has the overviews as they were, and changed places from the\n"
               "table.",
      .statuses = OVERVIEWS_STATUSES, .also = "mapcache-invalidate(1) mapcache.xml(5)",
      .examples = "mapcache overviews update -c mapcache.xml -t roads\nthe tables that the tileset roads shows",
      .page = "overviews.md" },
    { "overviews list", "list what maps of whole tables are read from", "-c FILE [OPTIONS]", &mc_overviews_option_table,
      mc_command_overviews, mc_check_overviews_options, .mask = MC_OVERVIEWS_LIST,
      .about =
          "Lists the overviews of the tables of PostGIS and of the shapefiles that the maps of a tileset show, or\n"
          "of all tilesets: the resolutions and the levels of the grid that each serves, its features, its bytes,\n"
          "when it was built, and whether maps are read from it; if not, why. Changes that the change log has\n"
          "and an overview does not know are counted: maps of these places are read from the table.",
      .statuses = PLAIN_STATUSES, .also = "mapcache.xml(5)",
      .examples = "mapcache overviews list -c mapcache.xml\nthe overviews of all tilesets\n"
                  "mapcache overviews list -c mapcache.xml -t roads --json\nan object for each level, for programs",
      .page = "overviews.md" },
    { "overviews drop", "drop what maps of whole tables are read from", "-c FILE -t TILESET [OPTIONS]",
      &mc_overviews_option_table, mc_command_overviews, mc_check_overviews_options, .mask = MC_OVERVIEWS_DROP,
      .about = "Drops the overviews of the tables of PostGIS and of the shapefiles that the maps of a tileset\n"
               "show, whatever the style is that they were built for. Maps are then read from\n"
               "the tables and shapefiles themselves.",
      .statuses = OVERVIEWS_STATUSES, .also = "mapcache.xml(5)",
      .examples = "mapcache overviews drop -c mapcache.xml -t roads\nthe tables that the tileset roads shows",
      .page = "overviews.md" },
    { "trace", "read trace lines from a server's error log", "[--summary] [--html FILE] [LOG ...]",
      &mc_trace_option_table, mc_command_trace, mc_check_trace_options, .argument = "LOG",
      .about = "Reads trace lines from the logs, or from standard input, and prints the calls of each request\n"
               "and thread as a tree, with microseconds. LogLevel mapcache:debug makes a server write them.",
      .statuses = PLAIN_STATUSES, .also = "mod_mapcache(8) mapcache.fcgi(8)",
      .examples = "mapcache trace /var/log/apache2/error.log\nthe calls of each request as a tree\n"
                  "mapcache trace --html flame.html < error.log\na page with a flame chart of every request",
      .page = "operations.md" },
    { "help", "print this list, or explain a command", "[COMMAND]", &mc_help_option_table, mc_command_help,
      .argument = "COMMAND", .topic = "Help",
      .about = "Prints the list of commands, or the help of a command. With an option: what is made of the same\n"
               "tables for machines and for the package.",
      .statuses = PLAIN_STATUSES, .page = "commands.md",
      .examples = "mapcache help jobs work\nthe same as `mapcache jobs work --help`\n"
                  "source <(mapcache help --completion bash)\ncompletion in this shell, without the package" },
    { "version", "print the version", "", &mc_version_option_table, mc_command_version,
      .about = "Prints the name and the version of the program.", .statuses = PLAIN_STATUSES,
      .examples = "mapcache version --json\nas an object of JSON" },
    { "keys", "write the reference of all configuration keys", "", &mc_keys_option_table, mc_command_keys,
      .about = "Writes the reference of all configuration keys, in Markdown.", .statuses = PLAIN_STATUSES,
      .also = "mapcache.xml(5)", .examples = "mapcache keys > configuration.md\nthe reference as a file",
      .page = "configuration.md" },
    { "parameters", "write the reference of all parameters of requests", "", &mc_keys_option_table,
      mc_command_parameters, .about = "Writes the reference of all parameters of requests, in Markdown.",
      .statuses = PLAIN_STATUSES, .also = "mapcache.xml(5)",
      .examples = "mapcache parameters > parameters.md\nthe reference as a file", .page = "parameters.md" },
    { "urls", "write an example of each address of each service", "", &mc_keys_option_table, mc_command_urls,
      .about = "Writes an example of each kind of address, and what is answered to it, in Markdown.",
      .statuses = PLAIN_STATUSES, .examples = "mapcache urls > urls.md\nthe page as a file", .page = "urls.md" },
    { .name = NULL },
};
