/* What the parts of the reader of MapProxy's files share. */
#ifndef MC_ADOPT_MAPPROXY_H
#define MC_ADOPT_MAPPROXY_H

#include "adopt/draft.h"
#include "mapcache/grid.h"

enum { MC_MAPPROXY_LEVELS = 256 };

/* A grid of MapProxy's; its tiles are those of our grid `name`. */
typedef struct mc_mapproxy_grid {
    const char *name;
    const char *folder; /* the part of folders that names it: EPSG3857 */
    const char *own;    /* its name in MapProxy */
    const char *srs;    /* as our grid says it */
    bool north_west;    /* tiles are counted from the upper left corner */
    mc_extent box;
    double tile_width, tile_height;
    int levels;
    double resolutions[MC_MAPPROXY_LEVELS];
    bool broken; /* it is none: said already */
} mc_mapproxy_grid;

/* A cache of MapProxy's, as a tileset sees it. */
typedef struct mc_mapproxy_cache {
    mc_branch *branch;
    const char *own;                 /* its name in MapProxy */
    const char *store;               /* name of the <cache> */
    const char *source;              /* name of the <source>; NULL: what is not stored is not drawn */
    const char *format;              /* name of the <format> */
    const char *tileset;             /* the one that has its tiles; NULL: none yet */
    const apr_array_header_t *grids; /* of const mc_mapproxy_grid * */
    bool open;                       /* it is being read: a cache of itself is none */
    bool broken;
} mc_mapproxy_cache;

typedef struct mc_mapproxy {
    const char *file;
    mc_adopt *adopt;
    apr_pool_t *pool;
    mc_branch *root;
    const char *folder;  /* that paths are seen from */
    int room;            /* how many more values its files may have */
    apr_hash_t *grids;   /* of mc_mapproxy_grid * */
    apr_hash_t *caches;  /* of mc_mapproxy_cache * */
    apr_hash_t *sources; /* name of a source with a format -> name of the <source> here */
    apr_hash_t *formats; /* what a format says -> its name here */
} mc_mapproxy;

/* The grid of that name, written at first use; NULL after a note at `at`. */
const mc_mapproxy_grid *mc_mapproxy_find_grid(mc_mapproxy *proxy, const char *name, const mc_branch *at);

/* The name of a <source> for a source of MapProxy's (NAME or NAME:LAYERS); NULL after a note: none. `format`: a media
 * type that is asked for. `grid`: of the cache that asks. */
const char *mc_mapproxy_find_source(mc_mapproxy *proxy, const mc_branch *names, const char *format,
                                    const mc_mapproxy_grid *grid);

/* The cache of that name, written at first use; NULL after a note, or where there is none. */
mc_mapproxy_cache *mc_mapproxy_find_cache(mc_mapproxy *proxy, const char *name, const mc_branch *at);

/* The <cache> with the tiles of a cache in a grid. `extension`: of the files. `*only_read`: nothing can be added. */
const char *mc_mapproxy_store(bool *only_read, mc_mapproxy *proxy, mc_branch *cache, const char *own,
                              const mc_mapproxy_grid *grid, const char *extension, bool single);

/* The tileset of a cache: writes it where there is none yet. `title` and `about` may be NULL. */
const char *mc_mapproxy_tileset(mc_mapproxy *proxy, mc_mapproxy_cache *cache, const char *name, const char *title,
                                mc_branch *about);

/* All layers, and the services. */
void mc_mapproxy_layers(mc_mapproxy *proxy);
void mc_mapproxy_services(mc_mapproxy *proxy);

/* A YAML file that is a map. `*room`: how many more values there may be. */
mc_error *mc_mapproxy_parse(mc_branch **root, const char *file, int *room, mc_adopt *adopt) MC_CHECKED;

/* A value of a cache, or else of globals.cache. */
const char *mc_mapproxy_setting(mc_mapproxy *proxy, mc_branch *cache, const char *key, const char *otherwise);

/* Seconds of {weeks, days, hours, minutes, seconds}; 0: none, or a moment, which is noted. */
double mc_mapproxy_seconds(mc_mapproxy *proxy, mc_branch *span);

/* What to do about keys that are not taken over. */
extern const mc_draft_advice mc_mapproxy_advice[];

#endif
