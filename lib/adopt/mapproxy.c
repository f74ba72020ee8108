/* mapproxy.yaml with the files that it is based on (MapProxy's documentation, "configuration"). */
#include "adopt/mapproxy.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "adopt/yaml.h"

enum { BASES_MAX = 50 };

const mc_draft_advice mc_mapproxy_advice[] = {
    { "coverage", "give the tileset's <grid> a restricted_extent" },
    { "restful_template", "addresses are /wmts/1.0.0/LAYER/STYLE/GRID/LEVEL/ROW/COLUMN.EXT: docs/urls.md" },
    { "watermark", "<watermark> of the tileset draws a picture over each tile" },
    { "dimensions", "the tileset's <dimensions> say them; stored tiles lie in folders of their own for each value" },
    { "on_error", "a map that cannot be drawn is an error; <errors> says what clients see of it" },
    { "forward_req_params", "a <dimension> hands a parameter on" },
    { "min_res", "<grid minzoom= maxzoom=> bounds the levels" },
    { "max_res", "<grid minzoom= maxzoom=> bounds the levels" },
    { "min_scale", "<grid minzoom= maxzoom=> bounds the levels" },
    { "max_scale", "<grid minzoom= maxzoom=> bounds the levels" },
    { "use_direct_from_res", "max-cached-zoom and out-of-zoom-strategy=\"proxy\" of <grid> say the same by the level" },
    { "ssl_no_cert_checks",
      "certificates are always checked; CURL_CA_BUNDLE in <environment> is the file of authorities" },
    { "ssl_ca_certs", "CURL_CA_BUNDLE in <environment> is the file of authorities" },
    { "wms.srs", "maps are in the CRSs of the grids; a second tileset with a source of type tileset has another CRS" },
    { "bbox_srs", "<wgs84boundingbox> in the tileset's <metadata> is what capabilities say" },
    { "attribution", "<attribution> in the tileset's <metadata> names the source" },
    { "legendurl", "legends are drawn from styles: docs/drawing.md" },
    { "legendgraphic", "legends are drawn from styles: docs/drawing.md" },
    { "opacity", "let the source draw it" },
    { "transparent_color", "let the source draw transparent maps" },
    { "upscale_tiles", "max-cached-zoom of <grid> makes finer levels from coarser ones" },
    { "downscale_tiles", "let the seeder fill the coarse levels" },
    { "featureinfo_xslt", "feature info is handed on as it is" },
    { "use_grid_names", "addresses name grids" },
    { "origin", "TMS counts from the lower left corner, XYZ (/gmaps) and WMTS from the upper one" },
    { "strict", "<strict> of the service asks for what the standard makes mandatory" },
    { NULL, NULL },
};

static mc_error *load_with_bases(mc_branch **root, mc_mapproxy *proxy, const char *file, apr_array_header_t *open);

static bool
is_replaced(const char *key)
{
    static const char *const keys[] = { "bbox", "tile_size", "max_output_pixels", "sources", "grids" };
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

static mc_branch *
layer_of_name(mc_branch *list, const char *name)
{
    for (mc_branch *one = list->children; one != NULL && name != NULL; one = one->next) {
        const mc_branch *known = one->kind != MC_BRANCH_MAP ? NULL : mc_branch_get(one, "name");
        if (known != NULL && known->text != NULL && strcmp(known->text, name) == 0)
            return one;
    }
    return NULL;
}

/* What `base` says and `own` does not, into `own`. */
static void
merge_base(mc_branch *own, mc_branch *base)
{
    for (mc_branch *child = base->children, *next; child != NULL; child = next) {
        next = child->next;
        mc_branch *known = own->kind == MC_BRANCH_LIST ? layer_of_name(own, mc_branch_text(child, "name", NULL)) : NULL;
        for (mc_branch *one = own->kind == MC_BRANCH_MAP ? own->children : NULL; one != NULL; one = one->next)
            known = strcmp(one->key, child->key) == 0 ? one : known;
        if (known == NULL)
            mc_branch_add(own, child);
        else if (known->kind == child->kind &&
                 (known->kind == MC_BRANCH_MAP || (known->kind == MC_BRANCH_LIST && known->key != NULL &&
                                                   !is_replaced(known->key) && known->children != NULL)))
            merge_base(known, child);
    }
}

mc_error *
mc_mapproxy_parse(mc_branch **root, const char *file, int *room, mc_adopt *adopt)
{
    char *bytes;
    size_t size;
    MC_TRY(mc_draft_read_file(&bytes, &size, file, adopt));
    MC_TRY(mc_yaml_parse(root, file, bytes, size, room, adopt->pool));
    if ((*root)->kind != MC_BRANCH_MAP)
        return mc_error_create(adopt->pool, MC_ERR_CONFIG, "%s:1: this is no map of keys and values", file);
    return MC_OK;
}

/* A base that cannot be read is noted where it is named. */
static void
load_base(mc_mapproxy *proxy, mc_branch *root, const mc_branch *name, const char *file, apr_array_header_t *open)
{
    mc_branch *base;
    const char *path =
        name->text == NULL ? "" : mc_draft_path(mc_draft_folder(file, proxy->pool), name->text, proxy->pool);
    char *real = realpath(path, NULL);
    path = real == NULL ? path : apr_pstrdup(proxy->pool, real);
    free(real);
    for (int i = 0; i < open->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(open, i, const char *), path) == 0) {
            mc_draft_note_at(proxy->adopt, name, "base %s is left out: the file is its own base", name->text);
            return;
        }
    mc_error *error = open->nelts >= BASES_MAX
                          ? mc_error_create(proxy->pool, MC_ERR_CONFIG, "there are more than %d files", BASES_MAX)
                          : load_with_bases(&base, proxy, path, open);
    if (error == MC_OK)
        merge_base(root, base);
    else
        mc_draft_note_at(proxy->adopt, name, "base is not taken over: %s", mc_error_chain(error, proxy->pool));
}

/* `open`: the files on the way here, and those that have been read: each is read once. */
static mc_error *
load_with_bases(mc_branch **root, mc_mapproxy *proxy, const char *file, apr_array_header_t *open)
{
    MC_TRY(mc_mapproxy_parse(root, file, &proxy->room, proxy->adopt));
    char *real = realpath(file, NULL);
    APR_ARRAY_PUSH(open, const char *) = apr_pstrdup(proxy->pool, real == NULL ? file : real);
    free(real);
    mc_branch *bases = mc_branch_get(*root, "base");
    for (int i = 0; i < mc_branch_count(bases) && i <= BASES_MAX; i++)
        load_base(proxy, *root, mc_branch_item(bases, i), file, open);
    return MC_OK;
}

/* Values that say nothing about maps. */
static void
pass_settings(mc_branch *root)
{
    static const char *const paths[] = { "parts",
                                         "globals.cache.lock_dir",
                                         "globals.cache.tile_lock_dir",
                                         "globals.cache.concurrent_tile_creators",
                                         "globals.cache.max_tile_limit",
                                         "globals.cache.minimize_meta_requests",
                                         "globals.cache.bulk_meta_tiles",
                                         "globals.cache.directory_permissions",
                                         "globals.cache.file_permissions",
                                         "globals.cache.meta_size",
                                         "globals.cache.link_single_color_images",
                                         "globals.http.hide_error_details",
                                         "globals.http.method",
                                         "globals.image.font_dir",
                                         "globals.image.stretch_factor",
                                         "globals.image.max_shrink_factor",
                                         "globals.srs",
                                         "globals.mapserver" };
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
        mc_branch_pass(mc_branch_find(root, paths[i]));
}

mc_error *
mc_adopt_mapproxy(mc_adopt *adopt, const char *file)
{
    mc_mapproxy *proxy = apr_pcalloc(adopt->pool, sizeof(*proxy));
    proxy->adopt = adopt;
    proxy->pool = adopt->pool;
    proxy->room = MC_BRANCHES_MAX;
    proxy->folder = mc_draft_folder(mc_draft_path(".", file, adopt->pool), adopt->pool);
    proxy->grids = apr_hash_make(adopt->pool);
    proxy->caches = apr_hash_make(adopt->pool);
    proxy->sources = apr_hash_make(adopt->pool);
    proxy->formats = apr_hash_make(adopt->pool);
    MC_TRY(load_with_bases(&proxy->root, proxy, file, apr_array_make(adopt->pool, 4, sizeof(const char *))));
    bool seeds = mc_branch_get(proxy->root, "seeds") != NULL || mc_branch_get(proxy->root, "cleanups") != NULL;
    if (mc_branch_get(proxy->root, "layers") == NULL && mc_branch_get(proxy->root, "caches") == NULL && seeds) {
        APR_ARRAY_PUSH(adopt->later, const char *) = file;
        return MC_OK;
    }
    if (mc_branch_get(proxy->root, "layers") == NULL)
        return mc_error_create(adopt->pool, MC_ERR_CONFIG,
                               "%s:1: `layers` is not there: this is no configuration of MapProxy", file);
    adopt->mapproxy = proxy;
    pass_settings(proxy->root);
    mc_mapproxy_layers(proxy);
    mc_mapproxy_services(proxy);
    mc_draft_note_untaken(adopt, proxy->root, mc_mapproxy_advice);
    return MC_OK;
}
