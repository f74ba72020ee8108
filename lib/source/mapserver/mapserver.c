/*
 * The source "mapserver": maps that MapServer draws from a map file (docs/reference/configuration.md 3.2). They are
 * drawn in child processes, so that neither MapServer nor the data of the map file has to be there when the server
 * starts, and a map file that crashes or hangs costs no more than its map.
 */
#include <apr_strings.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/module.h"
#include "source/mapserver/mapserver_cgi.h"
#include "source/mapserver/mapserver_children.h"
#include "source/source_base.h"

typedef struct mapserver_source {
    mc_source_base base;
    const char *mapfile;
    const char *layers;
    const char *mapserv; /* NULL: mapcache-mapserver draws */
    int ground;
    int processes;
    uint64_t generation;
} mapserver_source;

/* In the order of mc_mapserver_ground. */
#define GROUNDS "mapfile|transparent|opaque"

static const mc_key mapserver_keys[] = {
    MC_SOURCE_KEYS(mapserver_source, "1"),
    MC_KEY_TEXT("mapfile", offsetof(mapserver_source, mapfile), "The map file.",
                .flags = MC_KEY_REQUIRED | MC_KEY_WORKDIR),
    MC_KEY_TEXT(
        "layers", offsetof(mapserver_source, layers),
        "Names of layers or groups of the map file that are drawn, with commas between them. Not written: those "
        "whose STATUS is ON or DEFAULT.",
        .flags = MC_KEY_OURS),
    MC_KEY_CHOICE("background", offsetof(mapserver_source, ground), GROUNDS,
                  "What lies under the map: as the map file says (its IMAGECOLOR where its output format is not "
                  "transparent), nothing, or its IMAGECOLOR in any case.",
                  .flags = MC_KEY_OURS, .fallback = "mapfile"),
    MC_KEY_TEXT(
        "mapserv", offsetof(mapserver_source, mapserv),
        "MapServer's CGI program, which then draws in place of MapServer's library. Not written: the library, where "
        "the program \"mapcache-mapserver\" is installed; else the mapserv in PATH or /usr/lib/cgi-bin.",
        .flags = MC_KEY_OURS | MC_KEY_WORKDIR),
    MC_KEY_INT(
        "processes", offsetof(mapserver_source, processes),
        "Processes that draw map files, those of all sources together, beyond which a server process starts none "
        "for this one. 0: as many as <workers>.",
        .flags = MC_KEY_OURS, .max = 64, .fallback = "0"),
    MC_KEY_END,
};

/* --- what a child is asked -------------------------------------------------------------------------------------- */

/* By its code, in the form that has x (longitude) first whatever the registry says. Those that stood for 3857 before it
 * had a code are not in the registry. */
static const char *
srs_for_mapserver(const mc_grid *grid, apr_pool_t *pool)
{
    switch (grid->epsg) {
    case 0:
        return grid->srs;
    case 900913:
    case 3785:
    case 102100:
    case 102113:
        return "init=epsg:3857";
    default:
        return apr_psprintf(pool, "init=epsg:%d", grid->epsg);
    }
}

static mc_error *
write_texts(mc_mapserver_question *question, const char *const *texts, int count, apr_pool_t *pool)
{
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += strlen(texts[i]) + 1;
    if (size > MC_MAPSERVER_TEXTS_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "source \"%s\": names and values of more than %d bytes",
                               question->source, MC_MAPSERVER_TEXTS_MAX);
    char *to = apr_palloc(pool, size);
    question->texts = to;
    question->ask.text_size = (uint32_t)size;
    for (int i = 0; i < count; i++)
        to = (char *)memcpy(to, texts[i], strlen(texts[i]) + 1) + strlen(texts[i]) + 1;
    return MC_OK;
}

/* `wanted` NULL: only whether the map file can be opened. */
static mc_error *
ask_for(mc_mapserver_question *question, const mapserver_source *mapserver, const mc_render *wanted, apr_pool_t *pool)
{
    *question = (mc_mapserver_question){ .source = mapserver->base.source.name,
                                         .mapfile = mapserver->mapfile,
                                         .processes = mapserver->processes };
    mc_mapserver_ask *ask = &question->ask;
    const char *texts[3 + 2 * MC_MAPSERVER_PAIRS_MAX] = { mapserver->mapfile, "",
                                                          mapserver->layers == NULL ? "" : mapserver->layers };
    int count = 3;
    ask->generation = mapserver->generation;
    ask->ground = (uint32_t)mapserver->ground;
    if (wanted != NULL) {
        const mc_extent *box = &wanted->box;
        texts[1] = srs_for_mapserver(wanted->grid, pool);
        memcpy(ask->box, (double[]){ box->minx, box->miny, box->maxx, box->maxy }, sizeof(ask->box));
        ask->metres_per_unit = wanted->grid->metres_per_unit;
        ask->density = wanted->density > 0 ? wanted->density : 1;
        ask->width = wanted->width;
        ask->height = wanted->height;
        if (wanted->width > MC_MAPSERVER_SIDE_MAX || wanted->height > MC_MAPSERVER_SIDE_MAX)
            return mc_error_create(pool, MC_ERR_LIMIT, "source \"%s\": a map of more than %d pixels a side",
                                   question->source, MC_MAPSERVER_SIDE_MAX);
        if (wanted->dimension_count > MC_MAPSERVER_PAIRS_MAX)
            return mc_error_create(pool, MC_ERR_LIMIT, "source \"%s\": more than %d dimensions", question->source,
                                   MC_MAPSERVER_PAIRS_MAX);
        ask->pair_count = (uint32_t)wanted->dimension_count;
        for (int i = 0; i < wanted->dimension_count; i++) {
            texts[count++] = wanted->dimensions[i].name;
            texts[count++] = wanted->dimensions[i].value == NULL ? "" : wanted->dimensions[i].value;
        }
    }
    return write_texts(question, texts, count, pool);
}

/* --- the source ------------------------------------------------------------------------------------------------- */

/* Microseconds for a map file, and for all data of a configuration. */
static const apr_interval_time_t one_mapfile = 10 * APR_USEC_PER_SEC, all_mapfiles = 60 * APR_USEC_PER_SEC;

static mc_mapserver_cgi
cgi_of_source(const mapserver_source *mapserver)
{
    return (mc_mapserver_cgi){ .source = mapserver->base.source.name,
                               .program = mapserver->mapserv,
                               .mapfile = mapserver->mapfile,
                               .layers = mapserver->layers,
                               .ground = (mc_mapserver_ground)mapserver->ground,
                               .processes = mapserver->processes };
}

static mc_error *
try_mapfile(const mapserver_source *mapserver, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_mapserver_question question;
    mc_pixels *none;
    const mc_mapserver_cgi cgi = cgi_of_source(mapserver);
    if (mapserver->mapserv != NULL)
        return mc_mapserver_check_cgi(&cgi, ctx, pool);
    MC_TRY(ask_for(&question, mapserver, NULL, pool));
    return mc_mapserver_draw(&none, &question, ctx, pool);
}

/* What the first map would find out (`mapcache check`): one child opens the map files of all sources, or mapserv each.
 */
static void
open_mapfile(const mapserver_source *mapserver, const mc_node *at, mc_build *build)
{
    mc_diagnostics *diagnostics = build->diagnostics;
    apr_time_t began = mc_clock_now();
    apr_interval_time_t left = all_mapfiles - diagnostics->opening;
    mc_ctx ctx = { .pool = build->pool, .deadline = began + (left < one_mapfile ? left : one_mapfile) };
    if (left <= 0) {
        mc_complain(diagnostics, MC_WARNING, at,
                    "source \"%s\": the map file was not opened: others took all of the time",
                    mapserver->base.source.name);
        return;
    }
    mc_error *error = try_mapfile(mapserver, &ctx, build->pool);
    diagnostics->opening += mc_clock_now() - began;
    if (error != MC_OK)
        mc_complain(diagnostics,
                    error->kind == MC_ERR_CONFIG || error->kind == MC_ERR_UPSTREAM ? MC_REFUSED : MC_WARNING, at, "%s",
                    mc_error_chain(error, build->pool));
    else if (mapserver->mapserv != NULL)
        mc_complain(diagnostics, MC_NOTE, at,
                    "source \"%s\": drawn by \"%s\", one process for each map; mapcache-mapserver, by MapServer's "
                    "library, is faster",
                    mapserver->base.source.name, mapserver->mapserv);
}

/* False: the source is refused. */
static bool
check_mapfile(const mapserver_source *mapserver, const mc_node *node, mc_build *build)
{
    const mc_node *at = mc_node_child(node, "mapfile");
    mc_diagnostics *diagnostics = build->diagnostics;
    int refused = diagnostics->refused;
    if (access(mapserver->mapfile, R_OK) != 0)
        mc_complain(diagnostics, MC_REFUSED, at, "source \"%s\": the map file \"%s\" cannot be read: %s",
                    mapserver->base.source.name, mapserver->mapfile, strerror(errno));
    else if (mapserver->mapserv != NULL && access(mapserver->mapserv, X_OK) != 0)
        mc_complain(diagnostics, MC_REFUSED, mc_node_child(node, "mapserv"),
                    "source \"%s\": the program \"%s\" cannot be run: %s", mapserver->base.source.name,
                    mapserver->mapserv, strerror(errno));
    else if (diagnostics->thorough)
        open_mapfile(mapserver, at, build);
    return diagnostics->refused == refused;
}

/* Where the configuration names no mapserv and MapServer's library is not there. NULL: the library draws, or nothing
 * does. */
static const char *
mapserv_instead_of_library(apr_pool_t *pool)
{
#ifdef MC_HAVE_MAPSERVER
    const char *program;
    mc_error *missing = mc_module_program(&program, "mapserver", pool);
    mc_error_ignore(missing);
    if (missing == MC_OK)
        return NULL;
#endif
    return mc_mapserver_find_cgi(pool);
}

static mc_source *
mapserver_from_config(const mc_node *node, mc_build *build)
{
    static _Atomic uint64_t generations; /* a reload opens the map files anew */
    mapserver_source *mapserver = apr_pcalloc(build->pool, sizeof(*mapserver));
    if (!mc_source_read(&mapserver->base, &mc_source_mapserver, node, build))
        return NULL;
    mapserver->generation = ++generations;
    mapserver->base.source.needs_format = true;
    if (mapserver->mapserv == NULL)
        mapserver->mapserv = mapserv_instead_of_library(build->pool);
    if (mapserver->mapserv != NULL)
        mapserver->base.source.no_dimensions = "mapserv draws it, and draws another map where a value is not allowed";
#ifndef MC_HAVE_MAPSERVER
    if (mapserver->mapserv == NULL) {
        mc_complain(build->diagnostics, MC_NOT_BUILT, node,
                    "source \"%s\": this build has no type \"mapserver\", and the program mapserv is not installed; "
                    "reach the map file through a source of type \"wms\"",
                    mapserver->base.source.name);
        return &mapserver->base.source;
    }
#endif
    return check_mapfile(mapserver, node, build) ? &mapserver->base.source : NULL;
}

static mc_error *
mapserver_render(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    const mapserver_source *mapserver = (const mapserver_source *)source;
    if (mapserver->mapserv != NULL) {
        const mc_mapserver_cgi cgi = cgi_of_source(mapserver);
        return mc_mapserver_draw_cgi(&map->data, &cgi, wanted, ctx, pool);
    }
#ifdef MC_HAVE_MAPSERVER
    mc_mapserver_question question;
    MC_TRY(ask_for(&question, mapserver, wanted, pool));
    return mc_mapserver_draw(&map->pixels, &question, ctx, pool);
#else
    return mc_error_create(pool, MC_ERR_NOT_BUILT, "source \"%s\": this build has no type \"mapserver\"", source->name);
#endif
}

const mc_source_ops mc_source_mapserver = {
    MC_KIND("mapserver", mapserver_keys, mapserver_from_config,
            "Map files, drawn by MapServer's library or its program mapserv in processes of their own."),
    .render = mapserver_render,
};
