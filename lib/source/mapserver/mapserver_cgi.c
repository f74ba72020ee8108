/* See mapserver_cgi.h. */
#include "source/mapserver/mapserver_cgi.h"

#include <apr_strings.h>
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "mapcache/grid.h"
#include "source/mapserver/mapfile_layers.h"
#include "source/mapserver/mapserver_children.h"
#include "source/mapserver/mapserver_counters.h"
#include "source/mapserver/mapserver_process.h"
#include "text/secret.h"
#include "text/text.h"

enum {
    HEAD_MAX = 16 * 1024,  /* bytes before the image */
    SPARE_MAX = 64 * 1024, /* that an image may have beyond its pixels */
    PIECE = 64 * 1024,     /* that is read at once */
    SAID_MAX = 300,
    LOGGED_MAX = 1024, /* of what mapserv says on its standard error */
    CAPABILITIES_MAX = 64 << 20,
    LONGEST_MAP = 100000 /* seconds: no deadline is later */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the three below */
static pthread_cond_t changed;                           /* a process has ended */
static pid_t owner;                                      /* whose processes they are: not those of a fork of it */
static int running;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
make_cgi_condition(void)
{
    mc_clock_condition(&changed);
}

const char *
mc_mapserver_find_cgi(apr_pool_t *pool)
{
    const char *path = getenv("PATH");
    for (const char *at = path == NULL ? "" : path; *at != '\0'; at += *at == ':') {
        size_t size = strcspn(at, ":");
        const char *program = apr_psprintf(pool, "%.*s/mapserv", (int)size, at);
        if (*at == '/' && access(program, X_OK) == 0)
            return program;
        at += size;
    }
    return access("/usr/lib/cgi-bin/mapserv", X_OK) == 0 ? "/usr/lib/cgi-bin/mapserv" : NULL;
}

/* --- what mapserv is asked ---------------------------------------------------------------------------------------- */

/* Whether a comma list has the name, blanks at the ends of its parts aside. */
static bool
is_in_list(const char *list, const char *name)
{
    for (size_t size; *name != '\0' && list != NULL; list = list[size] == '\0' ? NULL : list + size + 1) {
        size = strcspn(list, ",");
        size_t begin = strspn(list, " \t\r\n"), end = size;
        while (end > begin && isspace((unsigned char)list[end - 1]))
            end--;
        if (begin < end && strlen(name) == end - begin && strncmp(list + begin, name, end - begin) == 0)
            return true;
    }
    return false;
}

/* Names (const char *) of the layers to draw, in the order of the map file, which is that of MapServer's library. */
static mc_error *
choose_cgi_layers(apr_array_header_t **names, const mc_mapserver_cgi *cgi, apr_pool_t *pool)
{
    apr_array_header_t *layers;
    *names = apr_array_make(pool, 8, sizeof(const char *));
    mc_error *error = mc_mapfile_layers(&layers, cgi->mapfile, pool);
    if (error != MC_OK)
        return mc_error_wrap(pool, error, MC_ERR_CONFIG, "source \"%s\": the map file cannot be used", cgi->source);
    for (int i = 0; i < layers->nelts; i++) {
        const mc_mapfile_layer *layer = &APR_ARRAY_IDX(layers, i, mc_mapfile_layer);
        const bool chosen = cgi->layers == NULL
                                ? layer->on
                                : is_in_list(cgi->layers, layer->name) || is_in_list(cgi->layers, layer->group);
        if (chosen && *layer->name != '\0')
            APR_ARRAY_PUSH(*names, const char *) = layer->name;
    }
    if ((*names)->nelts == 0)
        return mc_error_create(pool, MC_ERR_CONFIG,
                               cgi->layers == NULL
                                   ? "source \"%s\": no layer of the map file has a NAME and STATUS ON or DEFAULT: "
                                     "<layers> says what is drawn"
                                   : "source \"%s\": the map file has none of the <layers>",
                               cgi->source);
    return MC_OK;
}

/* By a code, as WMS has it. Those that stood for 3857 before it had a code are not in the registry. */
static mc_error *
code_for_wms(int *code, const mc_mapserver_cgi *cgi, const mc_grid *grid, apr_pool_t *pool)
{
    static const int mercators[] = { 900913, 3785, 102100, 102113 };
    *code = grid->epsg;
    for (size_t i = 0; i < sizeof(mercators) / sizeof(mercators[0]); i++)
        if (grid->epsg == mercators[i])
            *code = 3857;
    return *code != 0 ? MC_OK
                      : mc_error_create(pool, MC_ERR_NOT_BUILT,
                                        "source \"%s\": mapserv draws in a CRS with a code of EPSG alone", cgi->source);
}

static mc_error *
write_cgi_query(const char **query, const mc_mapserver_cgi *cgi, const mc_render *wanted, apr_pool_t *pool)
{
    static const char *const grounds[] = { [MC_MAPSERVER_AS_MAPFILE] = "",
                                           [MC_MAPSERVER_TRANSPARENT] = "&TRANSPARENT=TRUE",
                                           [MC_MAPSERVER_OPAQUE] = "&TRANSPARENT=FALSE" };
    apr_array_header_t *names;
    const char *list = "";
    int code;
    *query = "";
    if (wanted->dimension_count > 0)
        return mc_error_create(pool, MC_ERR_NOT_BUILT,
                               "source \"%s\": dimensions need the program \"mapcache-mapserver\", as mapserv draws "
                               "another map where a value is not allowed",
                               cgi->source);
    MC_TRY(choose_cgi_layers(&names, cgi, pool));
    for (int i = 0; i < names->nelts; i++)
        list = apr_pstrcat(pool, list, i == 0 ? "" : ",",
                           mc_url_encode(APR_ARRAY_IDX(names, i, const char *), NULL, true, false, pool), NULL);
    MC_TRY(code_for_wms(&code, cgi, wanted->grid, pool));
    *query = apr_psprintf(pool,
                          "SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&FORMAT=image/png&EXCEPTIONS="
                          "application/vnd.ogc.se_xml&LAYERS=%s&SRS=EPSG:%d&BBOX=%.17g,%.17g,%.17g,%.17g&WIDTH=%d&"
                          "HEIGHT=%d%s",
                          list, code, wanted->box.minx, wanted->box.miny, wanted->box.maxx, wanted->box.maxy,
                          wanted->width, wanted->height, grounds[cgi->ground]);
    if (wanted->density > 1)
        *query = apr_psprintf(pool, "%s&MAP_RESOLUTION=%.17g", *query, 72 * wanted->density);
    return MC_OK;
}

/* --- the process -------------------------------------------------------------------------------------------------- */

static mc_error *
enter_cgi(const mc_mapserver_cgi *cgi, mc_ctx *ctx, apr_pool_t *pool)
{
    const int most = mc_mapserver_most(cgi->processes, ctx);
    mc_error *error = MC_OK;
    pthread_once(&once, make_cgi_condition);
    pthread_mutex_lock(&lock);
    if (owner != getpid()) {
        owner = getpid();
        running = 0;
    }
    while (running >= most && error == MC_OK) {
        mc_wait_end end = mc_wait_condition(&changed, &lock, ctx->deadline, ctx);
        if (end != MC_WAIT_READY)
            error = mc_error_create(pool, MC_ERR_UNAVAILABLE, "source \"%s\": %s", cgi->source,
                                    end == MC_WAIT_GONE ? "the client has gone"
                                                        : "all processes of MapServer were busy until the deadline");
    }
    running += error == MC_OK;
    pthread_mutex_unlock(&lock);
    return error;
}

static void
leave_cgi(void)
{
    pthread_mutex_lock(&lock);
    running--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* All that it says; at most so much, its end, or the deadline. */
static mc_error *
receive_answer(mc_buf *answer, const mc_mapserver_process *process, const mc_mapserver_cgi *cgi, mc_ctx *ctx,
               apr_pool_t *pool)
{
    size_t got;
    do {
        mc_error *error = mc_buf_reserve(answer, PIECE, pool);
        if (error != MC_OK)
            return mc_error_wrap(pool, error, error->kind == MC_ERR_LIMIT ? MC_ERR_UPSTREAM : error->kind,
                                 "source \"%s\": there is no room for what mapserv says", cgi->source);
        mc_mapserver_talk talk =
            mc_mapserver_receive_some(&got, process, answer->data + answer->size, PIECE, ctx->deadline, ctx);
        if (talk == MC_MAPSERVER_LATE)
            return mc_error_create(pool, MC_ERR_TIMEOUT, "source \"%s\": mapserv has not drawn the map in time",
                                   cgi->source);
        if (talk == MC_MAPSERVER_GONE)
            return mc_error_create(pool, MC_ERR_UNAVAILABLE, "source \"%s\": the client has gone", cgi->source);
        answer->size += got;
    } while (got > 0);
    return MC_OK;
}

/* The words of an error document that begins there, without markup. */
static const char *
words_of_answer(const mc_buf *answer, size_t begin, apr_pool_t *pool)
{
    char text[4096];
    size_t size = 0;
    bool inside = false;
    for (size_t i = begin; i < answer->size && size + 1 < sizeof(text); i++) {
        const char c = (char)answer->data[i];
        const bool blank = isspace((unsigned char)c) || c == '<' || c == '>';
        if (c == '<' || c == '>')
            inside = c == '<';
        if (!inside && (!blank || (size > 0 && text[size - 1] != ' ')))
            text[size++] = blank ? ' ' : c;
    }
    text[size] = '\0';
    return mc_message_text(mc_hide_passwords(text, NULL, pool), SAID_MAX, pool);
}

/* Where what follows the head begins, which ends with an empty line (RFC 3875, section 6); 0: there is no such line. */
static size_t
body_of_answer(const mc_buf *answer)
{
    const size_t looked = answer->size < HEAD_MAX ? answer->size : HEAD_MAX;
    for (size_t i = 0; i + 2 < looked; i++) {
        const uint8_t *at = answer->data + i;
        if (at[0] == '\n' && (at[1] == '\n' || (at[1] == '\r' && at[2] == '\n')))
            return at[1] == '\n' ? i + 2 : i + 3;
    }
    return 0;
}

static mc_error *
image_of_answer(mc_buf **data, const mc_buf *answer, const mc_mapserver_cgi *cgi, apr_pool_t *pool)
{
    static const uint8_t mark[] = { 0x89, 'P', 'N', 'G' };
    const size_t body = body_of_answer(answer);
    if (body != 0 && answer->size - body > sizeof(mark) && memcmp(answer->data + body, mark, sizeof(mark)) == 0) {
        *data = mc_buf_attach(mc_buf_copy(answer->data + body, answer->size - body), pool);
        return MC_OK;
    }
    mc_error *cause = mc_error_create(pool, MC_ERR_UPSTREAM, "mapserv says: %s",
                                      answer->size == 0 ? "nothing" : words_of_answer(answer, body, pool));
    return mc_error_wrap(pool, cause, MC_ERR_UPSTREAM, "source \"%s\": MapServer has not drawn the map", cgi->source);
}

/* mapserv sends a map without a layer whose server has not answered, and says so in its log alone. */
static mc_error *
check_cgi_complaints(const char *said, bool whole, const mc_mapserver_cgi *cgi, apr_pool_t *pool)
{
    static const char *const missing[] = { "WMS server error.", "WMS connection error.", "WFS server error.",
                                           "WFS connection error.", "HTTP request error." };
    if (!whole)
        return mc_error_create(
            pool, MC_ERR_UPSTREAM,
            "source \"%s\": mapserv says so much that the lack of a layer may be lost in it: see DEBUG "
            "in its map file, and MS_DEBUGLEVEL",
            cgi->source);
    for (size_t i = 0; said != NULL && i < sizeof(missing) / sizeof(missing[0]); i++) {
        const char *at = strstr(said, missing[i]);
        if (at == NULL)
            continue;
        mc_error *cause = mc_error_create(pool, MC_ERR_UPSTREAM, "mapserv says: %s",
                                          mc_message_text(mc_hide_passwords(at, NULL, pool), SAID_MAX, pool));
        return mc_error_wrap(pool, cause, MC_ERR_UPSTREAM, "source \"%s\": MapServer has drawn the map without a layer",
                             cgi->source);
    }
    return MC_OK;
}

static mc_error *
run_cgi(mc_buf *answer, const mc_mapserver_cgi *cgi, const char *query, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_mapserver_process process;
    apr_array_header_t *variables = apr_array_make(pool, 8, sizeof(const char *));
    APR_ARRAY_PUSH(variables, const char *) = apr_pstrcat(pool, "QUERY_STRING=", query, NULL);
    APR_ARRAY_PUSH(variables, const char *) = apr_pstrcat(pool, "MS_MAPFILE=", cgi->mapfile, NULL);
    APR_ARRAY_PUSH(variables, const char *) = "REQUEST_METHOD=GET";
    APR_ARRAY_PUSH(variables, const char *) = "GATEWAY_INTERFACE=CGI/1.1";
    APR_ARRAY_PUSH(variables, const char *) = "SERVER_PROTOCOL=HTTP/1.0";
    APR_ARRAY_PUSH(variables, const char *) = "MS_ERRORFILE=stderr";
    apr_int64_t seconds = apr_time_sec(ctx->deadline - mc_clock_now()) + 2;
    seconds = seconds < 2 ? 2 : seconds > LONGEST_MAP ? LONGEST_MAP : seconds;
    MC_TRY(mc_mapserver_start_cgi(&process, cgi->program, variables, (int)seconds, pool));
    if (ctx->process != NULL)
        mc_count(ctx->process->metrics, MC_COUNT_mapserver_started_total, 1);
    mc_error *error = receive_answer(answer, &process, cgi, ctx, pool);
    bool whole;
    const char *said = mc_mapserver_all_complaints(&whole, &process, pool);
    if (said != NULL)
        mc_log_write(ctx, error == MC_OK ? MC_LOG_DEBUG : MC_LOG_WARN, "source \"%s\": mapserv says: %.*s", cgi->source,
                     LOGGED_MAX, mc_hide_passwords(said, NULL, pool));
    if (error == MC_OK)
        error = check_cgi_complaints(said, whole, cgi, pool);
    if (!mc_mapserver_end(&process))
        mc_log_write(ctx, MC_LOG_WARN, "source \"%s\": the kernel holds process %ld of mapserv, which was killed",
                     cgi->source, (long)process.pid);
    return error;
}

/* --- the source ------------------------------------------------------------------------------------------------- */

/* Whether the capabilities have the layer. */
static bool
is_layer_offered(const mc_buf *answer, const char *name, apr_pool_t *pool)
{
    const char *element = apr_pstrcat(pool, "<Name>", mc_xml_escape(name, pool), "</Name>", NULL);
    return memmem(answer->data, answer->size, element, strlen(element)) != NULL;
}

static mc_error *
check_cgi_capabilities(const mc_buf *answer, const mc_mapserver_cgi *cgi, const apr_array_header_t *names,
                       apr_pool_t *pool)
{
    static const char root[] = "<WMT_MS_Capabilities";
    if (memmem(answer->data, answer->size, root, sizeof(root) - 1) == NULL) {
        const char *words = answer->size == 0 ? "nothing" : words_of_answer(answer, body_of_answer(answer), pool);
        if (strstr(words, "msLoadConfig") == NULL)
            return mc_error_create(pool, MC_ERR_UPSTREAM,
                                   "source \"%s\": the map file cannot be used: mapserv says: %s", cgi->source, words);
        return mc_error_create(
            pool, MC_ERR_UNAVAILABLE,
            "source \"%s\": mapserv lacks its configuration file, which MAPSERVER_CONFIG_FILE in the "
            "environment of the server names, or which is /etc/mapserver.conf: %s",
            cgi->source, words);
    }
    for (int i = 0; i < names->nelts; i++) {
        const char *name = APR_ARRAY_IDX(names, i, const char *);
        if (!is_layer_offered(answer, name, pool))
            return mc_error_create(pool, MC_ERR_CONFIG,
                                   "source \"%s\": the map file does not offer the layer \"%s\" by WMS, which mapserv "
                                   "needs to draw it",
                                   cgi->source, name);
    }
    return MC_OK;
}

mc_error *
mc_mapserver_check_cgi(const mc_mapserver_cgi *cgi, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *names;
    MC_TRY(choose_cgi_layers(&names, cgi, pool));
    mc_buf *answer = mc_buf_attach(mc_buf_create(PIECE, CAPABILITIES_MAX), pool);
    MC_TRY(run_cgi(answer, cgi, "SERVICE=WMS&VERSION=1.1.1&REQUEST=GetCapabilities", ctx, pool));
    return check_cgi_capabilities(answer, cgi, names, pool);
}

mc_error *
mc_mapserver_draw_cgi(mc_buf **data, const mc_mapserver_cgi *cgi, const mc_render *wanted, mc_ctx *ctx,
                      apr_pool_t *pool)
{
    const char *query;
    MC_SLOW(ctx);
    MC_ASSERT(ctx->deadline != 0);
    if (wanted->width > MC_MAPSERVER_SIDE_MAX || wanted->height > MC_MAPSERVER_SIDE_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "source \"%s\": a map of more than %d pixels a side", cgi->source,
                               MC_MAPSERVER_SIDE_MAX);
    MC_TRY(write_cgi_query(&query, cgi, wanted, pool));
    MC_TRY(enter_cgi(cgi, ctx, pool));
    const size_t pixels = (size_t)wanted->width * (size_t)wanted->height * 4;
    mc_buf *answer = mc_buf_create(64 * 1024, pixels + pixels / 64 + HEAD_MAX + SPARE_MAX + PIECE);
    mc_error *error = run_cgi(answer, cgi, query, ctx, pool);
    leave_cgi();
    if (error == MC_OK)
        error = image_of_answer(data, answer, cgi, pool);
    mc_buf_unref(answer);
    if (ctx->process != NULL)
        mc_count(ctx->process->metrics, error == MC_OK ? MC_COUNT_mapserver_maps_total : MC_COUNT_mapserver_lost_total,
                 1);
    return error;
}
