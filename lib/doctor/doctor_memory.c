/* The check of <memory_cache>: requests for tiles of an access log, and how far apart those for the same tile are. */
#include <apr_strings.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "doctor/access_log.h"
#include "doctor/doctor_private.h"
#include "doctor/reuse.h"
#include "mapcache/service.h"
#include "mapcache/tileset.h"
#include "text/text.h"

enum { LINE_BYTES = 16384, FOLLOWED = 16384, MOST_ALIAS_PARTS = 3, FEWEST_TILES = 1000, CHECK_LINES = 1024 };

/* What a tile takes up in memory besides its bytes: its key and its place in the table. */
#define TILE_OVERHEAD 128.0

typedef struct access_reading {
    mc_doctor *doctor;
    apr_pool_t *scratch; /* of a line */
    mc_reuse *reuse;
    int alias_parts;        /* parts of the path before the service, as the last tile had them */
    double bytes, measured; /* of answers with status 200, and how many there were */
} access_reading;

static uint64_t
hash_tile(const mc_tile_request *tile)
{
    const char *grid = tile->link->grid->name;
    const int numbers[] = { tile->z, tile->x, tile->y };
    uint64_t hash = mc_hash64(tile->tileset->name, strlen(tile->tileset->name), 17);
    hash = mc_hash64(grid, strlen(grid), hash);
    hash = mc_hash64(numbers, sizeof(numbers), hash);
    for (int i = 0; i < tile->tileset->dimension_count; i++)
        if (tile->values != NULL && tile->values[i] != NULL)
            hash = mc_hash64(tile->values[i], strlen(tile->values[i]), hash);
    return hash;
}

/* The path without so many of its parts in front; NULL: it has not so many. */
static const char *
without_parts(const char *path, int parts)
{
    for (; parts > 0 && path != NULL; parts--)
        path = strchr(path + 1, '/');
    return path;
}

static bool
parse_as_tile(mc_request *request, const access_reading *reading, const char *path, const char *query)
{
    const mc_http_request http = { .method = "GET",
                                   .path = path,
                                   .query = query,
                                   .base_url = "http://localhost",
                                   .headers = apr_table_make(reading->scratch, 1),
                                   .client = "127.0.0.1" };
    mc_ctx ctx = *reading->doctor->ctx;
    mc_call call;
    ctx.pool = reading->scratch;
    ctx.headers = http.headers;
    mc_error *error = mc_service_dispatch(&call, request, reading->doctor->config, &http, &ctx, reading->scratch);
    return error == MC_OK && request->kind == MC_REQUEST_TILE && request->u.tile.count > 0;
}

/* The alias is not in the log's line as such: as many parts as the last tile had are tried first. */
static bool
find_tiles(mc_request *request, access_reading *reading, const char *target, size_t size)
{
    const char *question = memchr(target, '?', size);
    size_t length = question == NULL ? size : (size_t)(question - target);
    const char *path = mc_url_decode(target, length, false, reading->scratch);
    const char *query = question == NULL ? "" : apr_pstrmemdup(reading->scratch, question + 1, size - length - 1);
    for (int i = -1; path != NULL && i <= MOST_ALIAS_PARTS; i++) {
        int parts = i < 0 ? reading->alias_parts : i;
        const char *rest = i == reading->alias_parts ? NULL : without_parts(path, parts);
        if (rest == NULL || !parse_as_tile(request, reading, rest, query))
            continue;
        reading->alias_parts = parts;
        return true;
    }
    return false;
}

static void
take_log_line(access_reading *reading, const char *text, size_t size)
{
    mc_access_line line;
    mc_request request;
    if (!mc_access_line_parse(&line, text, size) || line.method_size != 3 || memcmp(line.method, "GET", 3) != 0 ||
        (line.status != 200 && line.status != 304) || !find_tiles(&request, reading, line.target, line.target_size))
        return;
    for (int i = 0; i < request.u.tile.count; i++)
        mc_reuse_add(reading->reuse, hash_tile(&request.u.tile.tiles[i]));
    reading->doctor->report->tiles += request.u.tile.count;
    if (line.status == 200 && line.bytes > 0 && request.u.tile.count == 1) {
        reading->bytes += (double)line.bytes;
        reading->measured++;
    }
}

/* Lines that are too long are passed over. Ends with the doctor's time. */
static mc_error *
read_access_log(access_reading *reading, const char *path)
{
    static char text[LINE_BYTES];
    mc_doctor *doctor = reading->doctor;
    FILE *file = fopen(path, "re");
    bool whole = true; /* the text begins with a line */
    if (file == NULL)
        return mc_error_create(doctor->pool, MC_ERR_IO, "the access log \"%s\": %s", path, strerror(errno));
    while (fgets(text, sizeof(text), file) != NULL) {
        size_t size = strlen(text);
        bool ends = size > 0 && text[size - 1] == '\n';
        if (whole && (ends || feof(file))) {
            take_log_line(reading, text, size);
            apr_pool_clear(reading->scratch);
            doctor->report->lines++;
        }
        whole = ends;
        if (doctor->report->lines % CHECK_LINES == 0 && mc_clock_now() > doctor->ctx->deadline) {
            mc_doctor_miss(doctor, NULL, "the access log was read up to line %" APR_INT64_T_FMT ": the time was up",
                           (apr_int64_t)doctor->report->lines);
            break;
        }
    }
    bool failed = ferror(file) != 0;
    fclose(file);
    return failed ? mc_error_create(doctor->pool, MC_ERR_IO, "the access log \"%s\" cannot be read", path) : MC_OK;
}

/* The smallest of the sizes that answers nearly as much as one for all tiles. */
static double
choose_size(const mc_reuse *reuse, double each)
{
    double most = mc_reuse_hit_ratio(reuse, 1e15);
    double bytes = 1048576;
    while (bytes < 1e13 && mc_reuse_hit_ratio(reuse, bytes / each) < most - 0.01)
        bytes *= 1.25;
    return bytes;
}

static double
add_size(mc_doctor *doctor, const mc_reuse *reuse, double bytes, double each)
{
    double ratio = mc_reuse_hit_ratio(reuse, bytes / each);
    APR_ARRAY_PUSH(doctor->report->sizes, mc_doctor_size) = (mc_doctor_size){ bytes, ratio };
    return ratio;
}

static void
judge_memory(mc_doctor *doctor, const mc_doctor_check *check, const mc_reuse *reuse, double each)
{
    double has = (double)mc_config_memory(doctor->config), best = choose_size(reuse, each), now = 0;
    for (int i = -3; i <= 3; i++) {
        double size = has > 0 ? has : best, scale = i < 0 ? 1.0 / (1 << -i) : 1 << i;
        double ratio = add_size(doctor, reuse, size * scale, each);
        now = i == 0 && has > 0 ? ratio : now;
    }
    double then = mc_reuse_hit_ratio(reuse, best / each);
    bool smaller = best < has / 4 && doctor->config->memory_cache >= 0;
    if (then < now + 0.02 && !smaller)
        return;
    apr_pool_t *pool = doctor->pool;
    double misses = 1 - then > 0.001 ? 1 - then : 0.001;
    long megabytes = (long)(best / 1048576) + 1;
    mc_doctor_find(
        doctor, &(mc_finding){
                    .check = check,
                    .subject = "<memory_cache>",
                    .found = apr_psprintf(pool,
                                          "%.0f MB would have answered %.1f %% of %" APR_INT64_T_FMT
                                          " requests for about %.0f tiles of %.1f kB (an estimate by reuse distances)",
                                          has / 1048576, 100 * now, (apr_int64_t)doctor->report->tiles,
                                          mc_reuse_things(reuse), each / 1000),
                    .why = smaller ? "the rest of the memory answers next to nothing"
                                   : "a tile that memory does not have is read from its store",
                    .todo = apr_psprintf(pool, "<memory_cache>%ldM</memory_cache>: would have answered %.1f %%",
                                         megabytes, 100 * then),
                    .factor = smaller ? 1 : (1 - now) / misses });
}

void
mc_doctor_check_memory(mc_doctor *doctor, const mc_doctor_check *check)
{
    if (doctor->options->access_log == NULL)
        return;
    access_reading reading = { .doctor = doctor, .reuse = mc_reuse_create(FOLLOWED, doctor->pool) };
    apr_pool_create(&reading.scratch, doctor->pool);
    doctor->failed = read_access_log(&reading, doctor->options->access_log);
    apr_pool_destroy(reading.scratch);
    if (doctor->failed != MC_OK)
        return;
    if (doctor->report->tiles < FEWEST_TILES || reading.measured < 1) {
        mc_doctor_miss(doctor, check,
                       "the access log has %" APR_INT64_T_FMT " requests for tiles of this "
                       "configuration; at least %d are needed",
                       (apr_int64_t)doctor->report->tiles, FEWEST_TILES);
        return;
    }
    doctor->report->tile_bytes = reading.bytes / reading.measured;
    judge_memory(doctor, check, reading.reuse, doctor->report->tile_bytes + TILE_OVERHEAD);
}
