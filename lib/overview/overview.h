/*
 * Overviews of the tables that a tileset's maps show (docs/internals/overviews.md): for each resolution a table of the
 * features that can be seen there.
 */
#ifndef MC_OVERVIEW_OVERVIEW_H
#define MC_OVERVIEW_OVERVIEW_H

#include "mapcache/ctx.h"
#include "mapcache/tileset.h"

/* What is being done. */
typedef struct mc_overview_news {
    const char *kind, *name; /* of the source: "table" and its name, "shapefile" and its path */
    const char *text;        /* in words, without the name */
    bool passing;            /* the next news say the same anew */
    double resolution;       /* of the level that this is about, units of the table's CRS for a pixel; 0: none */
    int64_t features, bytes; /* of a level that was made; bytes 0: it was not */
    double differs;          /* the part of the pixels that look other than in maps without it; negative: not known */
} mc_overview_news;

/* Levels that there are of a source. */
typedef struct mc_overview_found {
    const char *kind, *name; /* of the source, as in the news */
    const char *layer;
    double rows;              /* of the source, as the database estimates them; below 0: not known */
    int levels;               /* told of together; 0: there is none for the maps of the tileset */
    int number;               /* of a level for the maps of the tileset, from 1; 0: `levels` for other maps */
    bool refused;             /* the source cannot have levels: the fault says why */
    double resolution, until; /* of one level: it serves maps from its resolution to below the second one */
    int coarsest, finest;     /* levels of the grid, whose tiles are read from it; -1: none */
    int64_t features, bytes;  /* features below 0: not known */
    const char *built;        /* when, in UTC; NULL: not known */
    int64_t changes;          /* of the table that it does not know; below 0: nobody tells it of changes */
    const char *fault;        /* why no map is read from it; NULL: maps are, but for those of what has changed */
} mc_overview_found;

/* What an update may do of itself where the levels have to be built anew, which may take long. */
typedef struct mc_overview_bounds {
    double share;   /* of the time since they were built, that the last build took at most */
    double longest; /* seconds that the last build took at most */
} mc_overview_bounds;

/* What has become of a table whose overviews were to be updated. */
typedef struct mc_overview_outcome {
    int updates;      /* of levels of one style, that were brought up to date */
    int64_t boxes;    /* that had changed */
    int64_t rows;     /* that were looked at for that */
    const char *anew; /* why the levels were built anew, or have to be; NULL: they were patched */
    double wait;      /* seconds for which that is put off; below 0: longer than an update waits; 0: it is done */
    double seconds;   /* that the last build took; below 0: nobody knows */
} mc_overview_outcome;

typedef struct mc_overview_options {
    bool is_static;         /* the operator says that the tables do not change: they need no change log */
    const char *connection; /* instead of those of the layers; NULL: theirs */
    void (*tell)(void *baton, const mc_overview_news *news);
    void (*list)(void *baton, const mc_overview_found *found); /* of mc_overview_list */
    void *baton;
    const mc_overview_bounds *bounds; /* of an update by a server; NULL: levels are built anew wherever they have to be,
                                         and no plane is counted with the memory budget */
    mc_overview_outcome *outcome;     /* of an update: added to; NULL: nobody asks */
} mc_overview_options;

/*
 * Builds the overviews of all tables and shapefiles of the tileset's layers, each table in one transaction: whoever
 * reads meanwhile has the old levels or the new ones. `ctx` has the runtime of a process. MC_ERR_CONFIG: the tileset
 * shows no table and no shapefile, or one of them cannot have overviews; the message says why. MC_ERR_UNAVAILABLE:
 * somebody else builds, and the message says who; other errors as of mc_postgres_start. Nothing is left behind then.
 */
mc_error *mc_overview_build(const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx,
                            apr_pool_t *pool) MC_CHECKED;

/* Brings the overviews of all tables of the tileset's layers up to date with the change log, each table in one
 * transaction; builds them anew where that is not enough. A table without overviews has none afterwards. Errors as of
 * mc_overview_build. */
mc_error *mc_overview_update(const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx,
                             apr_pool_t *pool) MC_CHECKED;

/* Whether the tileset shows a table or a shapefile. */
bool mc_overview_may_have(const mc_tileset *tileset);

/* Whether the tileset has a layer of that table, "table" or "schema.table" as configured; and the same update for the
 * layers of that table alone. */
bool mc_overview_shows_table(const mc_tileset *tileset, const char *connection, const char *table);
mc_error *mc_overview_update_layers(const mc_tileset *tileset, const char *connection, const char *table,
                                    const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Tells of the levels that the tables and shapefiles of the tileset's layers have. A source that cannot have any is
 * told of with the reason. The error is that of the first one that could not be asked, after the others were. */
mc_error *mc_overview_list(const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx,
                           apr_pool_t *pool) MC_CHECKED;

/* Drops the overviews of all tables of the tileset's layers, of any style. Errors as of mc_overview_build. */
mc_error *mc_overview_drop(const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx,
                           apr_pool_t *pool) MC_CHECKED;

#endif
