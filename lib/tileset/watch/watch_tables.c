/* The tables that a tileset shows, as its source and the sources below it name them. */
#include <apr_hash.h>
#include <apr_strings.h>

#include "changes/watch.h"
#include "mapcache/upkeep.h"
#include "tileset/tileset_private.h"
#include "tileset/watch/settle.h"

/* Pixels more for tiles that are drawn of other tiles, resampled. */
#define RESAMPLING_PIXELS 4

typedef struct table_search {
    mc_watch *watch;
    apr_hash_t *seen; /* sources by address */
    double more;      /* pixels that features reach further than their source says */
    int queries;
    apr_pool_t *pool;
} table_search;

static void
take_source_table(void *baton, const mc_source_table *table)
{
    table_search *search = baton;
    if (table->table == NULL) {
        search->queries++;
        return;
    }
    mc_watch_add(search->watch, &(mc_watch_table){ .connection = table->connection,
                                                   .table = table->table,
                                                   .srid = table->srid,
                                                   .reach = table->reach,
                                                   .layer = table->layer,
                                                   .margin = search->more });
}

static void
search_source_tables(void *baton, mc_source *source)
{
    table_search *search = baton;
    mc_source **key = apr_pmemdup(search->pool, &source, sizeof(source));
    if (apr_hash_get(search->seen, key, sizeof(source)) != NULL)
        return;
    apr_hash_set(search->seen, key, sizeof(source), source);
    if (source->ops->tables != NULL)
        source->ops->tables(source, take_source_table, search);
    search->more = RESAMPLING_PIXELS;
    if (source->ops->parts != NULL)
        source->ops->parts(source, search_source_tables, search);
}

static void
add_watch_link(mc_watch *watch, const mc_tileset *tileset, const mc_grid_link *link)
{
    mc_watch_link *added = &watch->links[watch->link_count++];
    added->link = link;
    mc_tileset_metatile_size(&added->columns, &added->rows, tileset, link->grid);
    atomic_init(&added->marks, NULL);
}

static void
add_watch_links(mc_watch *watch, const mc_tileset *tileset, apr_pool_t *pool)
{
    const int most = 2 * tileset->link_count + tileset->dense_link_count;
    watch->links = apr_pcalloc(pool, sizeof(*watch->links) * (size_t)(most + 1));
    for (int i = 0; i < tileset->link_count; i++) {
        add_watch_link(watch, tileset, tileset->links[i]);
        if (tileset->links[i]->intermediate != NULL)
            add_watch_link(watch, tileset, tileset->links[i]->intermediate);
    }
    for (int i = 0; i < tileset->dense_link_count; i++)
        add_watch_link(watch, tileset, tileset->dense_links[i]);
}

static void
note_memory_of_part(void *baton, mc_cache *part)
{
    double *longest = baton;
    *longest = part->remember_for > *longest ? part->remember_for : *longest;
}

static double
longest_memory(const mc_tileset *tileset)
{
    double longest = tileset->cache == NULL ? 0 : tileset->cache->remember_for;
    if (tileset->cache != NULL)
        mc_cache_parts(tileset->cache, note_memory_of_part, &longest);
    return longest;
}

/* Vector tiles have what lies in their own buffer, whatever styles say. */
static double
vector_buffer_of(const mc_tileset *tileset)
{
    if (tileset->format == NULL || tileset->format->type != MC_FORMAT_MVT)
        return -1;
    const mc_mvt_options *options = &tileset->format->mvt;
    return (double)(options->buffer + 2) / options->extent * tileset->links[0]->grid->tile_width + 1;
}

/* A mc_watch.changed: what a dimension's database lists may be something else now. */
static void
forget_answers_of_dimensions(const mc_watch *watch)
{
    const mc_tileset *tileset = watch->subject;
    for (int i = 0; i < tileset->dimension_count; i++)
        mc_dimension_forget(tileset->dimensions[i]);
}

void
mc_tileset_connect_watch(mc_tileset *tileset, const mc_node *node, mc_build *build)
{
    mc_watch *watch = tileset->shown;
    bool told = watch != NULL && watch->tables->nelts > 0;
    bool listed = told && tileset->dimension_count > 0; /* by a catalogue: assemblies, and what they are made of */
    if (watch == NULL || tileset->link_count == 0 || (!mc_tileset_renders(tileset) && !listed))
        return;
    table_search search = { watch, apr_hash_make(build->pool), 0, 0, build->pool };
    if (mc_tileset_renders(tileset))
        search_source_tables(&search, tileset->source);
    watch->settle = mc_tileset_settle;
    watch->changed = forget_answers_of_dimensions;
    watch->subject = tileset;
    watch->memory = longest_memory(tileset);
    /* What is not rendered may be passed on as it is, however old: then the process knows that it has looked. */
    watch->timeless = tileset->cache == NULL || !mc_tileset_renders(tileset) || !mc_cache_keeps_time(tileset->cache);
    watch->metabuffer = tileset->metabuffer;
    watch->vector_buffer = vector_buffer_of(tileset);
    add_watch_links(watch, tileset, build->pool);
    if (search.queries > 0 && !told && build->changes != NULL)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "tileset \"%s\": nobody knows the tables of its <query> or <function>: name them in <watch>, or "
                    "its tiles stay "
                    "as they are when these change",
                    tileset->name);
    if (build->changes != NULL && watch->tables->nelts > 0)
        tileset->watch = watch;
}
