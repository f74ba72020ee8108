/*
 * Whole requests, from the front end's call to the response, on a configuration with every service but jobs (which
 * need a database), with sources that draw, give white images or cannot be reached, stores, dimensions and forwarding.
 * Input: method, path and query, a line each; lines of headers; an empty line; the body.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "fuzz_support.h"
#include "mapcache/server.h"
#include "server_mutator.h"

const char *__asan_default_options(void);

/* Memory of a server's pools is mapped: what is only known there looks lost. */
const char *
__asan_default_options(void)
{
    return "detect_leaks=0";
}

static char folder[] = "/tmp/fuzz-server-XXXXXX";
static apr_pool_t *root;
static mc_server *servers[2]; /* maps are assembled from tiles; or drawn and asked for */
static mc_runtime *runtime;

static const char *const configuration =
    "<mapcache><format name='MVT' type='MVT'/>"
    "<source name='white' type='dummy'/>"
    "<source name='far' "
    "type='wms'><http><url>http://127.0.0.1:9/?</url><connection_timeout>1</connection_timeout></http>"
    "<getmap><params><FORMAT>image/png</FORMAT><LAYERS>x</LAYERS></params></getmap>"
    "<getfeatureinfo><info_formats>text/plain,application/json</info_formats><params><QUERY_LAYERS>x</QUERY_LAYERS></"
    "params>"
    "</getfeatureinfo></source>"
    "<source name='areas' type='shapefile'><layer name='areas'><data>a.shp</data><srs>EPSG:4326</srs></layer></source>"
    "<cache name='files' type='disk'><base>FOLDER/tiles</base></cache>"
    "<cache name='rows' type='sqlite3'><dbfile>FOLDER/tiles.sqlite3</dbfile></cache>"
    "<tileset name='plain'><source>white</source><cache>rows</cache><grid>WGS84</grid><grid>GoogleMapsCompatible</grid>"
    "<format>PNG</format><metatile>2 2</metatile><expires>60</expires></tileset>"
    "<tileset "
    "name='origin'><source>far</source><cache>rows</cache><grid>GoogleMapsCompatible</grid><format>JPEG</format></"
    "tileset>"
    "<tileset "
    "name='areas'><source>areas</source><cache>files</cache><grid>WGS84</grid><grid>GoogleMapsCompatible</grid>"
    "<format>PNG8</format></tileset>"
    "<tileset "
    "name='vectors'><source>areas</source><cache>rows</cache><grid>GoogleMapsCompatible</grid><format>MVT</format></"
    "tileset>"
    "<tileset name='dated'><source>white</source><cache>rows</cache><grid>WGS84</grid><grid>GoogleMapsCompatible</grid>"
    "<format>PNG</format><dimensions><dimension type='values' name='kind' "
    "default='a'><value>a</value><value>b</value></dimension>"
    "<dimension type='regex' name='time' time='true' default='2020-01-01'><regex>^[0-9TZ:,/P-]*$</regex></dimension>"
    "</dimensions></tileset>"
    "<service type='wms' enabled='true'><full_wms>FULL</full_wms><format allow_client_override='true'>PNG</format>"
    "<maxsize>512</maxsize><max_pixels>512K</max_pixels><forwarding_rule "
    "name='wfs'><max_post_length>4096</max_post_length>"
    "<param name='SERVICE' type='values'><value>WFS</value></param><http><url>http://127.0.0.1:9/wfs</url></http>"
    "</forwarding_rule></service>"
    "<service type='wmts' enabled='true'/><service type='tms' enabled='true'/><service type='kml' enabled='true'/>"
    "<service type='gmaps' enabled='true'/><service type='ve' enabled='true'/><service type='ogcapi' "
    "enabled='true'/><service type='mapguide' enabled='true'/>"
    "<service type='demo' enabled='true'/><service type='metrics' enabled='true'/><service type='health' "
    "enabled='true'/>"
    "<service type='status' enabled='true'><page>true</page></service>"
    "<service type='purge' enabled='true'><token>0123456789abcdef</token></service>"
    "<errors>report</errors><deadline>5</deadline><workers>0</workers><io_workers>1</io_workers><memory_cache>1M</"
    "memory_cache>"
    "<locker type='disk'><directory>FOLDER</directory></locker>"
    "</mapcache>";

static void
write_silently(void *baton, mc_log_level level, const char *message)
{
    (void)baton;
    (void)level;
    MC_ASSERT(strpbrk(message, "\r\n") == NULL); /* a line of the log is one */
}

static const mc_log silence = { .write = write_silently, .level = MC_LOG_DEBUG };

static int
remove_file(const char *path, const struct stat *state, int kind, struct FTW *where)
{
    (void)state;
    (void)kind;
    (void)where;
    return remove(path);
}

static void
remove_folder(void)
{
    nftw(folder, remove_file, 16, FTW_DEPTH | FTW_PHYS);
}

static void
put_file(const char *name, const void *bytes, size_t size)
{
    char path[sizeof(folder) + 32];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
}

/* A shapefile of one point at (1, 2) with one attribute. */
static void
put_shapefile(void)
{
    static uint8_t shapes[128] = {
        [2] = 0x27, [3] = 0x0A, [27] = 64, [28] = 0xE8, [29] = 3, [32] = 1, [103] = 1, [107] = 10, [108] = 1
    };
    static uint8_t entries[108] = {
        [2] = 0x27, [3] = 0x0A, [27] = 54, [28] = 0xE8, [29] = 3, [32] = 1, [103] = 50, [107] = 10
    };
    static const uint8_t table[32 + 32 + 1 + 5] = {
        3, [4] = 1, [8] = 65, [10] = 5, [32] = 'A', [43] = 'C', [48] = 4, [64] = 13, ' ', 'a', '<', 'c', '&'
    };
    const double point[4] = { 1, 2, 1, 2 };
    memcpy(shapes + 36, point, sizeof(point));
    memcpy(entries + 36, point, sizeof(point));
    memcpy(shapes + 112, point, 2 * sizeof(*point));
    put_file("a.shp", shapes, sizeof(shapes));
    put_file("a.shx", entries, sizeof(entries));
    put_file("a.dbf", table, sizeof(table));
}

static const char *
replace_word(const char *text, const char *word, const char *by)
{
    const char *at = strstr(text, word);
    return at == NULL ? text
                      : apr_pstrcat(root, apr_pstrmemdup(root, text, (apr_size_t)(at - text)), by,
                                    replace_word(at + strlen(word), word, by), NULL);
}

static void
exit_where_it_failed(mc_error *error)
{
    if (error == MC_OK)
        return;
    fprintf(stderr, "%s\n", mc_error_chain(error, root));
    abort();
}

static void
start_servers(void)
{
    apr_pool_create(&root, NULL);
    if (mkdtemp(folder) == NULL)
        abort();
    atexit(remove_folder);
    put_shapefile();
    const char *text = replace_word(configuration, "FOLDER", folder);
    for (int i = 0; i < 2; i++) {
        const char *one = replace_word(text, "FULL", i == 0 ? "assemble" : "forward");
        put_file("mapcache.xml", one, strlen(one));
        exit_where_it_failed(mc_server_load(&servers[i], apr_pstrcat(root, folder, "/mapcache.xml", NULL),
                                            mc_diagnostics_create(root), root));
    }
    exit_where_it_failed(mc_runtime_create(&runtime, mc_server_config(servers[0]), 1, true, &silence, root));
    mc_runtime_limit_requests(runtime, mc_server_config(servers[0]), 64);
}

static mc_error *
read_input_body(mc_buf **body, void *baton, size_t limit, apr_pool_t *pool)
{
    const parts *request = baton;
    if (request->body_size > limit)
        return mc_error_create(pool, MC_ERR_TOO_LARGE, "the body has more than %zu bytes", limit);
    *body = mc_buf_attach(mc_buf_copy(request->body, request->body_size), pool);
    return MC_OK;
}

/* Header lines as a front end hands them on. */
static apr_table_t *
table_of_headers(const parts *request, apr_pool_t *pool)
{
    apr_table_t *headers = apr_table_make(pool, 8);
    for (int i = 0; i < request->headers->nelts; i++) {
        const char *line = APR_ARRAY_IDX(request->headers, i, const char *), *colon = strchr(line, ':');
        if (colon != NULL)
            apr_table_add(headers, apr_pstrmemdup(pool, line, (apr_size_t)(colon - line)),
                          colon + 1 + strspn(colon + 1, " "));
    }
    return headers;
}

/* What holds of every response. */
static void
check_response(const mc_http_response *response)
{
    const apr_array_header_t *headers = apr_table_elts(response->headers);
    MC_ASSERT(response->status >= 200 && response->status < 600);
    for (int i = 0; i < headers->nelts; i++) {
        const apr_table_entry_t *header = &APR_ARRAY_IDX(headers, i, apr_table_entry_t);
        MC_ASSERT(header->val != NULL && *header->key != '\0' && strpbrk(header->key, "\r\n: ") == NULL);
    }
    bool body = response->body != NULL && response->body->size > 0;
    MC_ASSERT(response->status != 304 || !body);
    MC_ASSERT(!body || apr_table_get(response->headers, "Content-Type") != NULL);
    MC_ASSERT(response->status != 503 || apr_table_get(response->headers, "Retry-After") != NULL);
    const char *type = apr_table_get(response->headers, "Content-Type");
    if (response->status == 200 && type != NULL && strcmp(type, "image/png") == 0)
        MC_ASSERT(response->body->size > 8 && memcmp(response->body->data, "\x89PNG\r\n\x1a\n", 8) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (root == NULL)
        start_servers();
    apr_pool_t *pool;
    apr_pool_create(&pool, root);
    parts request = split_request(data, size, pool);
    const uint8_t *at = data, *end = data + size;
    mc_http_request http = { .method = next_line(&at, end, pool),
                             .path = next_line(&at, end, pool),
                             .query = next_line(&at, end, pool),
                             .base_url = "http://h.example/a",
                             .headers = table_of_headers(&request, pool),
                             .client = "192.0.2.1" };
    if (strcmp(http.method, "POST") == 0) {
        http.read_body = read_input_body;
        http.read_body_baton = &request;
    }
    mc_ctx ctx = { .pool = pool, .process = mc_runtime_process(runtime), .log = &silence };
    mc_http_response *response;
    mc_server *server = servers[size % 2];
    (void)mc_server_body_limit(server, &http, pool);
    mc_server_handle(&response, server, &http, &ctx, pool);
    check_response(response);
    apr_pool_destroy(pool);
    return 0;
}
