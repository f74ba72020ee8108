/* Which tables a tileset shows: by its source, and by <watch>. Part of a configuration; read by the listener. */
#ifndef MC_CHANGES_WATCH_H
#define MC_CHANGES_WATCH_H

#include <stdatomic.h>

#include "mapcache/config.h"
#include "mapcache/ctx.h"
#include "mapcache/grid.h"

/* <changes>: how the change logs of databases are followed. */
typedef struct mc_changes_config {
    const char *connection; /* of <watch> without one of its own; NULL: none */
    const char *name;       /* of the readers that share one place in the log; NULL: by host and configuration */
    double settle;          /* seconds from a change to the removal of tiles that are still old */
    double poll;            /* seconds between two looks where no notification comes */
    double overviews;       /* seconds from one update of a table's overviews to the next at least; 0: none */
    const char *folder;     /* of expire lists; NULL: none */
    int minzoom, maxzoom;   /* levels that these lists mark */
} mc_changes_config;

extern const mc_key mc_changes_keys[];

/* NULL after a complaint. */
const mc_changes_config *mc_changes_from_config(const mc_node *node, mc_build *build);

/* One table that a tileset shows. */
typedef struct mc_watch_table {
    const char *connection; /* libpq's string or URI */
    const char *table;      /* "table" or "schema.table", unquoted */
    int srid;               /* that its coordinates count as; 0: as the log says */
    /* Pixels by which a feature reaches beyond its box at a scale; below 0: it is not shown. NULL: `margin` pixels. */
    double (*reach)(const void *layer, double scale);
    const void *layer;
    double margin;
    bool told; /* by <watch>: what dimensions ask may stand there, too */
} mc_watch_table;

struct mc_mark_set;

/* The tiles of a tileset on one grid. */
typedef struct mc_watch_link {
    const mc_grid_link *link;
    int columns, rows; /* of a metatile that no edge cuts */
    /* Of the process: the marks of these tiles. NULL until the process follows the log. */
    _Atomic(struct mc_mark_set *) marks;
} mc_watch_link;

struct mc_watch;

/* Removes what is stored of a range of a level and is older than a change that was seen at `time` at the latest. The
 * marks of this process may know better when it was. MC_ERR_LIMIT: the store cannot list so many tiles. */
typedef mc_error *mc_watch_settle(const struct mc_watch *watch, const mc_watch_link *link, int z,
                                  const mc_tile_range *range, apr_time_t time, mc_ctx *ctx, apr_pool_t *pool);

/* What a tileset shows. Immutable but for the marks. */
typedef struct mc_watch {
    const char *tileset;
    apr_array_header_t *tables; /* of mc_watch_table */
    mc_watch_link *links;
    int link_count;
    int metabuffer;       /* pixels around a metatile that are drawn and cut off */
    double vector_buffer; /* pixels around a vector tile that are part of it; below 0: tiles are images */
    bool timeless;        /* the store does not keep the time that a tile is put with */
    bool waits;           /* <when_changed>wait */
    double revalidation;  /* <stale_while_revalidate>: seconds; 0: without it */
    double memory;        /* seconds for which processes may remember tiles that others have stored anew */
    mc_watch_settle *settle;
    void (*changed)(
        const struct mc_watch *watch); /* a table that <watch> names has changed; before its marks are set */
    void *subject;                     /* the tileset, for these */
    const struct mc_cdns *cdns;        /* caches in front (lib/cdn), which are told of changes; NULL: there are none */
} mc_watch;

/* The keys of a tileset. `type_`: a struct with a member `watch` of mc_watch_config. */
typedef struct mc_watch_config {
    apr_array_header_t *tables;
    int when_changed;
    double revalidation;
} mc_watch_config;

extern const mc_key mc_watch_table_keys[];

#define MC_WATCH_KEYS(type_)                                                                                           \
    MC_KEY_TREE("watch", offsetof(type_, watch.tables), mc_watch_table_keys,                                           \
                "A table of a PostgreSQL database, \"table\" or \"schema.table\", that the tiles show and the source " \
                "does not name: the database behind a WMS, the tables of a `<query>` (docs/changes.md).",              \
                .flags = MC_KEY_OURS | MC_KEY_REPEATABLE),                                                             \
        MC_KEY_CHOICE("when_changed", offsetof(type_, watch.when_changed), "serve|wait",                               \
                      "What clients get of a tile whose table has changed, until the tile is drawn anew: `serve`, "    \
                      "the old one at once; `wait`, the new one, for which they wait.",                                \
                      .flags = MC_KEY_OURS, .fallback = "serve"),                                                      \
        MC_KEY_NUMBER("stale_while_revalidate", offsetof(type_, watch.revalidation),                                   \
                      "Seconds after the end of `<auto_expire>`, or after a change was seen, for which the old tile "  \
                      "goes out at once and is drawn anew behind the answer (RFC 5861). Later the first client "       \
                      "waits. 0: of expired tiles one client waits for the new one, of changed tiles none.",           \
                      .flags = MC_KEY_OURS, .min = 0, .max = 2147483647, .fallback = "0")

/* Reads the <watch> elements of a tileset whose other elements have been read. Links are added by the caller. */
mc_watch *mc_watch_from_config(const mc_watch_config *config, const char *tileset, const mc_node *node,
                               mc_build *build);

/* Adds a table; one that is there already is left as it is. */
void mc_watch_add(mc_watch *watch, const mc_watch_table *table);

/* The widest reach of a table at a level, in pixels of the grid, metabuffer included; below 0: the level does not show
 * the table. */
double mc_watch_reach(const mc_watch *watch, const mc_watch_table *table, const mc_grid *grid, int z);

/* Whether each change that makes a metatile of `link` old makes that of `other` old, too, which has the same place: the
 * tiles for fine screens are such. */
bool mc_watch_same_metatiles(const mc_watch *watch, const mc_watch_link *link, const mc_watch_link *other);

/* The link of a grid; NULL where there is none. */
static inline mc_watch_link *
mc_watch_find_link(const mc_watch *watch, const mc_grid *grid)
{
    for (int i = 0; i < watch->link_count; i++)
        if (watch->links[i].link->grid == grid)
            return &watch->links[i];
    return NULL;
}

#endif
