/*
 * The source "gdal": a raster that GDAL opens, warped to the grid (docs/reference/configuration.md 3.3). The work is
 * done in a module that is loaded with the first map, so that neither GDAL nor the raster has to be there when the
 * server starts.
 */
#include <apr_strings.h>
#include <string.h>

#include "base/module.h"
#include "source/gdal/gdal_values.h"
#include "source/gdal/gdal_warp.h"
#include "source/source_base.h"
#include "text/text.h"

typedef struct gdal_source {
    mc_source_base base;
    mc_gdal_raster raster;
    const char *resample;
    const char *overview_strategy;
    mc_gdal_values values;
} gdal_source;

static const mc_key gdal_keys[] = {
    MC_SOURCE_KEYS(gdal_source, "1"),
    MC_KEY_TEXT("data", offsetof(gdal_source, raster.data),
                "The raster: a file name, or any other text that GDAL opens. Gray, palette, RGB or RGBA, with a CRS.",
                .flags = MC_KEY_REQUIRED | MC_KEY_WORKDIR),
    MC_KEY_TEXT("drivers", offsetof(gdal_source, raster.drivers),
                "Drivers of GDAL (`GTiff JP2OpenJPEG`) that may open the raster, which then is refused where it names "
                "overviews elsewhere. Not written: GDAL opens whatever the file holds. A folder needs none: each file "
                "in it is opened as what its ending says."),
    MC_KEY_BOOL("connection_pooled", offsetof(gdal_source, raster.pooled),
                "Whether the raster stays open between maps.", .fallback = "true"),
    MC_KEY_TEXT(
        "resample", offsetof(gdal_source, resample),
        "NEAREST, BILINEAR, CUBIC, CUBICSPLINE, LANCZOS or AVERAGE, in any case. Palettes are never interpolated.",
        .fallback = "BILINEAR"),
    MC_KEY_TEXT("overview-strategy", offsetof(gdal_source, overview_strategy),
                "Which overview is read: AUTO (the coarsest that is fine enough), AUTO-n (n steps finer), NONE, or the "
                "number of "
                "one (0: the finest)."),
    MC_GDAL_VALUE_KEYS(gdal_source, values),
    MC_KEY_END,
};

static bool
parse_gdal_resample(mc_gdal_resample *resample, const char *text)
{
    static const char *const names[] = { "", "BILINEAR", "CUBIC", "CUBICSPLINE", "LANCZOS", "AVERAGE" };
    if (strncasecmp(text, "NEAR", 4) == 0) {
        *resample = MC_GDAL_NEAREST;
        return true;
    }
    for (int i = 1; i <= MC_GDAL_AVERAGE; i++)
        if (strcasecmp(text, names[i]) == 0) {
            *resample = (mc_gdal_resample)i;
            return true;
        }
    return false;
}

static bool
parse_overviews(mc_gdal_raster *raster, const char *text)
{
    raster->level = 0;
    if (text == NULL || strcasecmp(text, "AUTO") == 0) {
        raster->overviews = MC_GDAL_AUTO;
        return true;
    }
    if (strcasecmp(text, "NONE") == 0) {
        raster->overviews = MC_GDAL_NONE;
        return true;
    }
    bool relative = strncasecmp(text, "AUTO-", 5) == 0;
    raster->overviews = relative ? MC_GDAL_AUTO : MC_GDAL_LEVEL;
    return mc_parse_int(&raster->level, relative ? text + 5 : text, 0, 64);
}

#ifdef MC_HAVE_GDAL
/* What the first map would find out (`mapcache check`). */
static void
inspect_gdal_raster(const gdal_source *gdal, const mc_node *node, mc_build *build)
{
    mc_diagnostics *diagnostics = build->diagnostics;
    const char *name = gdal->base.source.name;
    void *symbol;
    mc_error *error = mc_module_symbol(&symbol, "gdal", MC_GDAL_SYMBOL, build->pool);
    if (error != MC_OK) {
        mc_complain(diagnostics, MC_NOT_BUILT, node, "source \"%s\": %s", name, mc_error_chain(error, build->pool));
        return;
    }
    const mc_gdal_ops *ops = symbol;
    ops->start();
    const mc_opening opening = { ops->inspect, &gdal->raster, apr_psprintf(build->pool, "source \"%s\"", name),
                                 "the raster", MC_REFUSED };
    mc_config_look(diagnostics, mc_node_child(node, "data"), &opening, build->pool);
}
#endif

static mc_source *
gdal_from_config(const mc_node *node, mc_build *build)
{
    gdal_source *gdal = apr_pcalloc(build->pool, sizeof(*gdal));
    if (!mc_source_read(&gdal->base, &mc_source_gdal, node, build))
        return NULL;
    gdal->raster.source = gdal->base.source.name;
    gdal->base.source.needs_format = true;
    if (!parse_gdal_resample(&gdal->raster.resample, gdal->resample)) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "resample"),
                    "source \"%s\": \"%s\" is no resampling: NEAREST, BILINEAR, CUBIC, CUBICSPLINE, LANCZOS or AVERAGE",
                    gdal->base.source.name, gdal->resample);
        return NULL;
    }
    if (!parse_overviews(&gdal->raster, gdal->overview_strategy)) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "overview-strategy"),
                    "source \"%s\": \"%s\" is no overview strategy: AUTO, AUTO-n, NONE or a number from 0 to 64",
                    gdal->base.source.name, gdal->overview_strategy);
        return NULL;
    }
    if (!mc_gdal_values_read(&gdal->raster, &gdal->values, node, build))
        return NULL;
#ifdef MC_HAVE_GDAL
    if (build->diagnostics->thorough)
        inspect_gdal_raster(gdal, node, build);
#else
    mc_complain(build->diagnostics, MC_NOT_BUILT, node, "source \"%s\": this build has no type \"gdal\"",
                gdal->base.source.name);
#endif
    return &gdal->base.source;
}

static mc_error *
gdal_render(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
#ifdef MC_HAVE_GDAL
    const gdal_source *gdal = (const gdal_source *)source;
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "gdal", MC_GDAL_SYMBOL, pool));
    const mc_gdal_ops *ops = symbol;
    return ops->render(&map->pixels, &gdal->raster, wanted, ctx, pool);
#else
    (void)map;
    (void)wanted;
    (void)ctx;
    return mc_error_create(pool, MC_ERR_NOT_BUILT, "source \"%s\": this build has no type \"gdal\"", source->name);
#endif
}

static mc_error *
gdal_place(mc_place *place, mc_source *source, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)ctx;
#ifdef MC_HAVE_GDAL
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "gdal", MC_GDAL_SYMBOL, pool));
    return ((const mc_gdal_ops *)symbol)->place(place, &((const gdal_source *)source)->raster, pool);
#else
    (void)place;
    return mc_error_create(pool, MC_ERR_NOT_BUILT, "source \"%s\": this build has no type \"gdal\"", source->name);
#endif
}

const mc_source_ops mc_source_gdal = {
    MC_KIND("gdal", gdal_keys, gdal_from_config, "A raster that GDAL opens, warped to the grid."),
    .render = gdal_render,
    .place = gdal_place,
};
