#include "service_fixture.h"

mc_config service_config;
static mc_build service_build;
mc_call service_call;
mc_request service_request;
apr_table_t *service_headers;

static mc_error *
list_colors(apr_array_header_t **values, mc_dimension *dimension, const char *tileset, mc_ctx *list_ctx,
            apr_pool_t *list_pool)
{
    (void)dimension;
    (void)tileset;
    (void)list_ctx;
    *values = apr_array_make(list_pool, 3, sizeof(const char *));
    APR_ARRAY_PUSH(*values, const char *) = "red";
    APR_ARRAY_PUSH(*values, const char *) = "blue";
    APR_ARRAY_PUSH(*values, const char *) = "<b>&";
    return MC_OK;
}

static mc_error *
fail_to_list(apr_array_header_t **values, mc_dimension *dimension, const char *tileset, mc_ctx *list_ctx,
             apr_pool_t *list_pool)
{
    (void)values;
    (void)dimension;
    (void)tileset;
    (void)list_ctx;
    return mc_error_create(list_pool, MC_ERR_UPSTREAM, "the database is down");
}

const mc_dimension_ops color_ops = { .type = "values", .list = list_colors };
static const mc_dimension_ops broken_ops = { .type = "postgresql", .list = fail_to_list };
const mc_source_ops source_ops = { .type = "wms" };

static mc_grid *
fixture_grid(const char *name)
{
    mc_grid *grid = apr_hash_get(service_build.grids, name, APR_HASH_KEY_STRING);
    ck_assert_ptr_nonnull(grid);
    return grid;
}

static mc_grid_link *
fixture_link(const char *grid_name)
{
    const mc_grid *grid = fixture_grid(grid_name);
    mc_grid_link *link = apr_pcalloc(pool, sizeof(*link));
    mc_tile_range *limits = apr_pcalloc(pool, (size_t)grid->level_count * sizeof(*limits));
    for (int z = 0; z < grid->level_count; z++)
        limits[z] = (mc_tile_range){ 0, 0, grid->levels[z].columns, grid->levels[z].rows };
    *link = (mc_grid_link){
        .grid = grid, .extent = grid->extent, .maxzoom = grid->level_count - 1, .max_cached_zoom = -1, .limits = limits
    };
    return link;
}

mc_tileset *
fixture_tileset(const char *name, const char *format, const char *grid_a, const char *grid_b)
{
    mc_tileset *tileset = apr_pcalloc(pool, sizeof(*tileset));
    tileset->name = name;
    tileset->metadata = mc_metadata_create(pool);
    tileset->format = format != NULL ? apr_hash_get(service_build.formats, format, APR_HASH_KEY_STRING) : NULL;
    tileset->links = apr_pcalloc(pool, 2 * sizeof(mc_grid_link *));
    tileset->links[tileset->link_count++] = fixture_link(grid_a);
    if (grid_b != NULL)
        tileset->links[tileset->link_count++] = fixture_link(grid_b);
    APR_ARRAY_PUSH(service_config.tilesets, mc_tileset *) = tileset;
    apr_hash_set(service_config.tilesets_by_name, name, APR_HASH_KEY_STRING, tileset);
    return tileset;
}

static void
fixture_dimension(mc_tileset *tileset, const char *name, const char *value, bool time, const mc_dimension_ops *ops)
{
    mc_dimension *dimension = apr_pcalloc(pool, sizeof(*dimension));
    *dimension = (mc_dimension){ .ops = ops, .name = name, .default_value = value, .time = time };
    mc_dimension **all = apr_pcalloc(pool, ((size_t)tileset->dimension_count + 1) * sizeof(*all));
    for (int i = 0; i < tileset->dimension_count; i++)
        all[i] = tileset->dimensions[i];
    all[tileset->dimension_count++] = dimension;
    tileset->dimensions = all;
}

static void
fixture_info(mc_tileset *tileset)
{
    mc_source *source = apr_pcalloc(pool, sizeof(*source));
    apr_array_header_t *formats = apr_array_make(pool, 2, sizeof(const char *));
    APR_ARRAY_PUSH(formats, const char *) = "text/plain";
    APR_ARRAY_PUSH(formats, const char *) = "text/html";
    *source = (mc_source){ .ops = &source_ops, .name = "origin", .info_formats = formats };
    tileset->source = source;
}

bool
fixture_services(const char *xml)
{
    mc_node *root;
    ck_ok(mc_config_parse_text(&root, "test", xml, strlen(xml), NULL, pool));
    service_build.diagnostics = mc_diagnostics_create(pool);
    apr_array_clear(service_config.services);
    mc_service *found[16] = { NULL };
    for (const mc_node *node = mc_node_child(root, "service"); node != NULL; node = mc_node_next(node)) {
        mc_service *service = mc_service_from_config(node, &service_build);
        for (int i = 0; service != NULL && mc_service_kinds[i] != NULL; i++)
            if (mc_service_kinds[i] == service->ops)
                found[i] = service;
    }
    for (int i = 0; i < 16; i++)
        if (found[i] != NULL)
            APR_ARRAY_PUSH(service_config.services, mc_service *) = found[i];
    return service_build.diagnostics->refused == 0;
}

void
fixture_setup(void)
{
    ctx.log = NULL; /* a dimension fails on purpose */
    service_build = (mc_build){ .pool = pool,
                                .diagnostics = mc_diagnostics_create(pool),
                                .grids = apr_hash_make(pool),
                                .formats = apr_hash_make(pool) };
    mc_grid_builtins(service_build.grids, pool);
    mc_format_builtins(service_build.formats, pool);
    service_config = (mc_config){
        .metadata = mc_metadata_create(pool),
        .caches = apr_array_make(pool, 1, sizeof(mc_cache *)),
        .grids = apr_array_make(pool, 4, sizeof(mc_grid *)),
        .tilesets = apr_array_make(pool, 8, sizeof(mc_tileset *)),
        .formats = apr_array_make(pool, 4, sizeof(mc_format *)),
        .services = apr_array_make(pool, 8, sizeof(mc_service *)),
        .tilesets_by_name = apr_hash_make(pool),
        .mtime = apr_time_from_sec(1700000000),
    };
    static const char *const names[] = { "WGS84", "GoogleMapsCompatible", "g", "PNG", "PNG8", "JPEG", "mixed" };
    for (int i = 0; i < 3; i++)
        APR_ARRAY_PUSH(service_config.grids, mc_grid *) = fixture_grid(names[i]);
    for (int i = 3; i < 7; i++)
        APR_ARRAY_PUSH(service_config.formats, const mc_format *) =
            apr_hash_get(service_build.formats, names[i], APR_HASH_KEY_STRING);
    service_config.default_format = apr_hash_get(service_build.formats, "mixed", APR_HASH_KEY_STRING);
    service_headers = apr_table_make(pool, 4);
    fixture_tileset("sq", NULL, "GoogleMapsCompatible", NULL);
    mc_tileset *base = fixture_tileset("base", "PNG", "WGS84", "GoogleMapsCompatible");
    fixture_info(base);
    mc_tileset *catalog = fixture_tileset("catalog", "JPEG", "GoogleMapsCompatible", NULL);
    fixture_dimension(catalog, "product", "all", false, &color_ops);
    fixture_dimension(catalog, "TIME", "2020", true, &broken_ops);
    mc_tileset *odd = fixture_tileset("a <odd>&name", "PNG", "WGS84", NULL);
    mc_metadata_set(odd->metadata, "title", "</script><script>alert(1)</script>");
    fixture_tileset("absent", "PNG", "WGS84", NULL)->not_built = "cache type riak";
    ck_assert(fixture_services(ALL_SERVICES));
}

mc_error *
dispatch_request(const char *path, const char *query)
{
    mc_http_request *http = apr_pcalloc(pool, sizeof(*http));
    *http = (mc_http_request){
        .method = "GET", .path = path, .query = query, .base_url = "http://localhost/mc", .headers = service_headers
    };
    return mc_service_dispatch(&service_call, &service_request, &service_config, http, &ctx, pool);
}

int
status_of(const char *path, const char *query, mc_document *body)
{
    *body = (mc_document){ .mime = "text/plain" };
    mc_error *error = dispatch_request(path, query);
    if (error == MC_OK)
        return -1;
    int status = mc_error_status(error->kind);
    service_call.draws_errors = true;
    if (service_call.service != NULL && service_call.service->ops->report != NULL)
        service_call.service->ops->report(body, &status, error, &service_call, pool);
    if (body->text == NULL)
        body->text = mc_buf_attach(mc_buf_copy(error->message, strlen(error->message)), pool);
    return status;
}

const char *
buf_text(const mc_buf *buf)
{
    return apr_pstrndup(pool, (const char *)buf->data, buf->size);
}

const char *
document_text(void)
{
    ck_assert_int_eq(service_request.kind, MC_REQUEST_DOCUMENT);
    return buf_text(service_request.u.document.text);
}

void
check_refused(const refused_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mc_document body;
        int status = status_of(rows[i].path, rows[i].query, &body);
        ck_assert_msg(status == rows[i].status, "%s?%s: status %d, not %d", rows[i].path, rows[i].query, status,
                      rows[i].status);
        const char *text = buf_text(body.text);
        ck_assert_msg(strcmp(body.mime, rows[i].mime) == 0, "%s?%s: %s", rows[i].path, rows[i].query, body.mime);
        ck_assert_msg(strstr(text, rows[i].holds) != NULL, "%s?%s: no \"%s\" in %s", rows[i].path, rows[i].query,
                      rows[i].holds, text);
        bool xml = strstr(body.mime, "xml") != NULL;
        ck_assert_msg(!xml || strstr(text, "<script>") == NULL, "%s?%s: unescaped", rows[i].path, rows[i].query);
    }
}
