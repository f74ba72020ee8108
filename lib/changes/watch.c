/* See watch.h. */
#include "changes/watch.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "db/postgres/postgres.h"
#include "grid/earth.h"

/* Share by which numbers that are computed in two ways may differ. */
#define SAME 1e-9

#define FIELD(member) offsetof(mc_changes_config, member)

const mc_key mc_changes_keys[] = {
    MC_KEY_TEXT("connection", FIELD(connection),
                "libpq connection string or URI of the database of each `<watch>` that has none of its own.",
                .flags = MC_KEY_OURS),
    MC_KEY_TEXT("name", FIELD(name),
                "Servers of one name share their stores: one of them looks after stored tiles for all. By default the "
                "name of the host and the path of this file.",
                .flags = MC_KEY_OURS),
    MC_KEY_NUMBER("settle", FIELD(settle),
                  "Seconds after a change until the tiles that nobody has asked for since are removed from their "
                  "stores: a server that starts later need not know of the change.",
                  .flags = MC_KEY_OURS, .min = 0, .max = 86400, .fallback = "60"),
    MC_KEY_TEXT("folder", FIELD(folder),
                "A folder of expire lists (osm2pgsql, imposm): lines z/x/y of Web Mercator. Stored tiles that a list "
                "names are marked as old in all tilesets, then the list is removed.",
                .flags = MC_KEY_OURS | MC_KEY_FILE),
    MC_KEY_INT("folder_minzoom", FIELD(minzoom), "The coarsest level that lists of the folder mark.",
               .flags = MC_KEY_OURS, .max = 1000, .fallback = "0"),
    MC_KEY_INT("folder_maxzoom", FIELD(maxzoom), "The finest level that lists of the folder mark.",
               .flags = MC_KEY_OURS, .max = 1000, .fallback = "1000"),
    MC_KEY_NUMBER("poll", FIELD(poll),
                  "Seconds after which the log is looked at though no notification has come, and the folder of lists.",
                  .flags = MC_KEY_OURS, .min = 0.05, .max = 3600, .fallback = "5"),
    MC_KEY_NUMBER("overviews", FIELD(overviews),
                  "Seconds from one update of a table's overviews to the next at least: the server that looks after "
                  "stored tiles updates them after changes (docs/overviews.md). 0: `mapcache overviews update` does.",
                  .flags = MC_KEY_OURS, .min = 0, .max = 86400, .fallback = "10"),
    MC_KEY_END,
};

#undef FIELD

typedef struct watch_element {
    const char *connection, *table;
    int srid;
    double margin;
} watch_element;

#define FIELD(member) offsetof(watch_element, member)

const mc_key mc_watch_table_keys[] = {
    MC_KEY_TEXT("@connection", FIELD(connection),
                "libpq connection string or URI of the database. Without one, that of `<changes>`.",
                .flags = MC_KEY_OURS),
    MC_KEY_INT("@srid", FIELD(srid), "SRID of the coordinates, where the table itself does not say it.",
               .flags = MC_KEY_OURS, .max = 999999, .fallback = "0"),
    MC_KEY_NUMBER("@margin", FIELD(margin), "Pixels by which what is drawn of a feature reaches beyond the feature.",
                  .flags = MC_KEY_OURS, .min = 0, .max = 1024, .fallback = "16"),
    MC_KEY_TEXT("", FIELD(table), "The table or view.", .flags = MC_KEY_OURS | MC_KEY_REQUIRED),
    MC_KEY_END,
};

#undef FIELD

const mc_changes_config *
mc_changes_from_config(const mc_node *node, mc_build *build)
{
    mc_changes_config *config = apr_pcalloc(build->pool, sizeof(*config));
    if (!mc_config_read(config, node, mc_changes_keys, build->diagnostics))
        return NULL;
    if (config->connection != NULL)
        mc_postgres_configure(config->connection, node, build);
    return config;
}

void
mc_watch_add(mc_watch *watch, const mc_watch_table *table)
{
    for (int i = 0; i < watch->tables->nelts; i++) {
        const mc_watch_table *known = &APR_ARRAY_IDX(watch->tables, i, const mc_watch_table);
        if (strcmp(known->connection, table->connection) == 0 && strcmp(known->table, table->table) == 0 &&
            known->srid == table->srid && known->layer == table->layer)
            return;
    }
    APR_ARRAY_PUSH(watch->tables, mc_watch_table) = *table;
}

static void
read_watch_element(mc_watch *watch, const mc_node *node, mc_build *build)
{
    watch_element element = { 0 };
    if (!mc_config_read(&element, node, mc_watch_table_keys, build->diagnostics))
        return;
    if (element.connection != NULL)
        mc_postgres_configure(element.connection, node, build);
    else if (build->changes != NULL)
        element.connection = build->changes->connection;
    if (element.connection == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "tileset \"%s\": a <watch> needs an attribute connection, or a <connection> in <changes>",
                    watch->tileset);
        return;
    }
    mc_watch_add(watch, &(mc_watch_table){ .connection = element.connection,
                                           .table = element.table,
                                           .srid = element.srid,
                                           .margin = element.margin,
                                           .told = true });
}

mc_watch *
mc_watch_from_config(const mc_watch_config *config, const char *tileset, const mc_node *node, mc_build *build)
{
    mc_watch *watch = apr_pcalloc(build->pool, sizeof(*watch));
    watch->tileset = tileset;
    watch->waits = config->when_changed == 1;
    watch->revalidation = config->revalidation;
    watch->vector_buffer = -1;
    watch->cdns = build->cdns;
    watch->tables = apr_array_make(build->pool, 4, sizeof(mc_watch_table));
    for (int i = 0; i < config->tables->nelts; i++)
        read_watch_element(watch, APR_ARRAY_IDX(config->tables, i, const mc_node *), build);
    if (config->tables->nelts > 0 && build->changes == NULL)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "tileset \"%s\" has <watch>, but nothing is watched without an element <changes> in <mapcache>",
                    tileset);
    return watch;
}

double
mc_watch_reach(const mc_watch *watch, const mc_watch_table *table, const mc_grid *grid, int z)
{
    double density = grid->density > 0 ? grid->density : 1;
    double scale = grid->levels[z].resolution * density * grid->metres_per_unit / MC_PIXEL_METRES;
    double margin = table->margin;
    if (watch->vector_buffer >= 0)
        margin = watch->vector_buffer;
    else if (table->reach != NULL)
        margin = table->reach(table->layer, scale);
    return margin < 0 ? -1 : margin * density + watch->metabuffer;
}

static bool
is_same_level(const mc_watch_link *a, const mc_watch_link *b, int z)
{
    const mc_grid *one = a->link->grid, *two = b->link->grid;
    double wide = one->tile_width * one->levels[z].resolution, high = one->tile_height * one->levels[z].resolution;
    return one->levels[z].columns == two->levels[z].columns && one->levels[z].rows == two->levels[z].rows &&
           fabs(two->tile_width * two->levels[z].resolution - wide) <= SAME * wide &&
           fabs(two->tile_height * two->levels[z].resolution - high) <= SAME * high &&
           memcmp(&a->link->limits[z], &b->link->limits[z], sizeof(mc_tile_range)) == 0;
}

/* Whether all that is drawn of the tables reaches as far on the ground in the tiles of `other`, at least. */
static bool
reaches_as_far(const mc_watch *watch, const mc_grid *grid, const mc_grid *other, int z)
{
    for (int i = 0; i < watch->tables->nelts; i++) {
        const mc_watch_table *table = &APR_ARRAY_IDX(watch->tables, i, const mc_watch_table);
        double reach = mc_watch_reach(watch, table, grid, z), others = mc_watch_reach(watch, table, other, z);
        if (reach >= 0 &&
            (others < 0 || reach * grid->levels[z].resolution > others * other->levels[z].resolution * (1 + SAME)))
            return false;
    }
    return true;
}

bool
mc_watch_same_metatiles(const mc_watch *watch, const mc_watch_link *link, const mc_watch_link *other)
{
    const mc_grid *grid = link->link->grid, *others = other->link->grid;
    bool same = link->columns == other->columns && link->rows == other->rows && grid->origin == others->origin &&
                grid->level_count == others->level_count && strcmp(grid->srs, others->srs) == 0 &&
                grid->extent.minx == others->extent.minx && grid->extent.miny == others->extent.miny &&
                grid->extent.maxx == others->extent.maxx && grid->extent.maxy == others->extent.maxy;
    for (int z = 0; z < grid->level_count && same; z++)
        same = is_same_level(link, other, z) && reaches_as_far(watch, grid, others, z);
    return same;
}
