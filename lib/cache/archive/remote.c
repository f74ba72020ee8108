/*
 * Parts of a file behind HTTP (RFC 9110, 14). All parts belong to one state of the file: each request says which
 * (If-Match), each answer is compared with it, and a file that was replaced is looked at anew.
 */
#include <apr_strings.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cache/archive/remote_send.h"
#include "cache/memory.h"
#include "cache/rest/rest_base.h"
#include "text/secret.h"
#include "text/text.h"

enum { FRONT_BYTES = 16384, VALIDATOR_BYTES = 256, FRONT_OF_REMOTE = 101 };

/* What a look has brought. */
typedef struct mc_remote_front {
    apr_time_t until; /* mc_clock_now(): so long the file is taken for unchanged */
    uint64_t whole;   /* bytes of the file */
    bool modified;    /* `validator` is the Last-Modified; else the ETag */
    char validator[VALIDATOR_BYTES];
    size_t size;
    uint8_t bytes[FRONT_BYTES];
} mc_remote_front;

/* The key under which the state of an address is known, whatever the state is. */
static void
remote_key(mc_range_key *key, const char *url)
{
    const mc_ranged_file any = { .path = url };
    mc_ranges_key(key, &any, FRONT_OF_REMOTE, 0, 0);
}

static struct mc_memory *
memory_of_remote(const mc_ctx *ctx)
{
    return ctx->process == NULL ? NULL : ctx->process->memory;
}

/* The client sees the cache's name, the log what has happened. */
static mc_error *
remote_error(const mc_ranged_file *file, mc_error_kind kind, apr_pool_t *pool, const char *why)
{
    mc_error *cause = mc_error_create(pool, kind, "%s: %s", mc_hide_address_password(file->path, pool), why);
    return mc_error_wrap(pool, cause, kind, "the archive of cache \"%s\" cannot be read", file->remote->name);
}

/* "bytes 0-16383/1234567": where the part begins, and the size of the whole. */
static bool
parse_content_range(uint64_t *first, uint64_t *whole, const char *text)
{
    char *end;
    if (text == NULL || strncasecmp(text, "bytes ", 6) != 0 || text[6] < '0' || text[6] > '9')
        return false;
    errno = 0;
    *first = strtoull(text + 6, &end, 10);
    const char *slash = strchr(end, '/');
    if (slash == NULL || slash[1] < '0' || slash[1] > '9')
        return false;
    *whole = strtoull(slash + 1, &end, 10);
    return errno == 0 && *end == '\0' && *whole < (uint64_t)1 << 62;
}

/* A strong ETag, or the time of the last change; NULL where the server says neither. */
static const char *
validator_of(bool *modified, const mc_http_reply *reply)
{
    const char *etag = apr_table_get(reply->headers, "ETag");
    const char *time = apr_table_get(reply->headers, "Last-Modified");
    *modified = etag == NULL || strncmp(etag, "W/", 2) == 0;
    return *modified ? time : etag;
}

/* The word of a store for its refusal, "" where it says none. */
static const char *
code_of_refusal(const mc_http_reply *reply, apr_pool_t *pool)
{
    return mc_rest_xml_text((const char *)reply->body->data, reply->body->size, "Code", pool);
}

/* A bucket that is not there is a mistake in the configuration. */
static bool
is_absent_file(const mc_http_reply *reply, const mc_ranged_file *file, apr_pool_t *pool)
{
    if (reply->status != 404 && reply->status != 410)
        return false;
    return file->remote->aws == NULL || strcmp(code_of_refusal(reply, pool), "NoSuchBucket") != 0;
}

static mc_error *
refuse_status(const mc_ranged_file *file, const mc_http_reply *reply, apr_pool_t *pool)
{
    int status = reply->status;
    const char *why = status == 401 || status == 403   ? "the server does not let us read it"
                      : status == 429 || status == 503 ? "the server is busy"
                      : status == 200                  ? "the server sends the whole file where a part is asked for"
                                                       : "the server does not give it";
    const char *code = file->remote->aws == NULL ? "" : code_of_refusal(reply, pool);
    return remote_error(file, MC_ERR_UPSTREAM, pool,
                        apr_psprintf(pool, "status %d: %s%s%s", status, why, *code == '\0' ? "" : ": ", code));
}

/* Fills in what is remembered from the answer to the first request. */
static mc_error *
take_front(mc_remote_front *front, const mc_ranged_file *file, const mc_http_reply *reply, apr_pool_t *pool)
{
    uint64_t first = 0;
    const char *validator = validator_of(&front->modified, reply);
    front->whole = reply->body->size;
    if (reply->status == 206 &&
        !parse_content_range(&first, &front->whole, apr_table_get(reply->headers, "Content-Range")))
        return remote_error(file, MC_ERR_UPSTREAM, pool, "the server does not say which part it sends");
    uint64_t expected = front->whole < FRONT_BYTES ? front->whole : FRONT_BYTES;
    if (reply->status == 200 && !reply->framed) /* RFC 9112 6.3, 8: it may be half of the file */
        return remote_error(file, MC_ERR_UPSTREAM, pool, "the server does not say how long the file is");
    if (first != 0 || reply->body->size != expected)
        return remote_error(file, MC_ERR_UPSTREAM, pool, "the server sends another part than was asked for");
    if (validator == NULL || strlen(validator) >= sizeof(front->validator))
        return remote_error(file, MC_ERR_UPSTREAM, pool,
                            "the server sends neither an ETag nor Last-Modified, by which a replaced file is seen");
    memcpy(front->validator, validator, strlen(validator) + 1);
    memcpy(front->bytes, reply->body->data, reply->body->size);
    front->size = reply->body->size;
    front->until = mc_clock_now() + (apr_time_t)(file->remote->revalidate * APR_USEC_PER_SEC);
    return MC_OK;
}

/* The state of the file is part of the key of all that is remembered of it. */
static void
stamp_remote(mc_ranged_file *file)
{
    const mc_remote_front *front = file->front;
    size_t size = strlen(front->validator);
    file->stamp = (mc_stamp){ .device = UINT64_MAX,
                              .inode = mc_hash64(front->validator, size, 1),
                              .size = (int64_t)front->whole,
                              .wal_size = -1,
                              .wal_mtime_ns = -1,
                              .wal_inode = mc_hash64(front->validator, size, 2) };
}

static mc_error *
ask_for_front(mc_ranged_file *file, apr_pool_t *pool)
{
    mc_range_ask ask = { .offset = 0, .size = FRONT_BYTES };
    const mc_http_reply *reply = &ask.reply;
    mc_range_key key;
    MC_TRY(mc_ranges_send(&ask, 1, file, NULL, false, pool));
    if (is_absent_file(reply, file, pool)) {
        file->missing = ENOENT;
        return MC_OK;
    }
    if (reply->status != 206 && reply->status != 200)
        return refuse_status(file, reply, pool);
    mc_remote_front *front = apr_pcalloc(pool, sizeof(*front));
    MC_TRY(take_front(front, file, reply, pool));
    file->front = front;
    mc_remote_front *kept = malloc(sizeof(*kept));
    if (kept == NULL)
        return MC_OK;
    memcpy(kept, front, sizeof(*kept));
    remote_key(&key, file->path);
    mc_memory_keep(file->ctx, MC_SHARE_LARGE, key.bytes, key.size, kept, sizeof(*kept), free);
    return MC_OK;
}

mc_error *
mc_ranges_ask(mc_ranged_file *file, const char *url, const mc_ranges_remote *remote, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_range_key key;
    *file = (mc_ranged_file){ .path = url, .descriptor = -1, .taken = apr_time_now(), .remote = remote, .ctx = ctx };
    remote_key(&key, url);
    file->front = mc_memory_find(memory_of_remote(ctx), MC_SHARE_LARGE, &file->held, key.bytes, key.size);
    if (file->front == NULL) {
        file->held = NULL;
    } else if (file->front->until < mc_clock_now()) {
        mc_clock_cache_release(file->held);
        file->held = NULL;
        file->front = NULL;
    }
    if (file->front == NULL)
        MC_TRY(ask_for_front(file, pool));
    if (file->front != NULL)
        stamp_remote(file);
    return MC_OK;
}

/* It is no longer the file of the look. */
static mc_error *
forget_remote(const mc_ranged_file *file, apr_pool_t *pool)
{
    mc_range_key key;
    remote_key(&key, file->path);
    mc_memory_drop(memory_of_remote(file->ctx), MC_SHARE_LARGE, key.bytes, key.size);
    return remote_error(file, MC_ERR_UNAVAILABLE, pool, "it was replaced just now");
}

/* What has come for a part. */
static mc_error *
judge_part(mc_range_part *part, const mc_range_ask *ask, const mc_ranged_file *file, apr_pool_t *pool)
{
    const mc_remote_front *front = file->front;
    const mc_http_reply *reply = &ask->reply;
    uint64_t first, whole;
    bool modified;
    if (reply->status == 412 || reply->status == 416 || reply->status == 404 || reply->status == 410)
        return forget_remote(file, pool);
    if (reply->status != 206)
        return refuse_status(file, reply, pool);
    const char *validator = validator_of(&modified, reply);
    if (validator == NULL || modified != front->modified || strcmp(validator, front->validator) != 0)
        return forget_remote(file, pool);
    if (!parse_content_range(&first, &whole, apr_table_get(reply->headers, "Content-Range")) || first != ask->offset ||
        whole != front->whole || reply->body->size != ask->size)
        return remote_error(file, MC_ERR_UPSTREAM, pool, "the server sends another part than was asked for");
    part->data = reply->body;
    return MC_OK;
}

mc_error *
mc_ranges_fetch_all(mc_range_part *parts, int count, mc_ranged_file *file, apr_pool_t *pool)
{
    const mc_remote_front *front = file->front;
    mc_range_ask *asks = apr_pcalloc(pool, sizeof(*asks) * (size_t)(count + 1));
    int *numbers = apr_pcalloc(pool, sizeof(*numbers) * (size_t)(count + 1)), asked = 0;
    for (int i = 0; i < count; i++) {
        mc_range_part *part = &parts[i];
        if (!mc_ranges_holds(file, part->offset, part->size))
            return remote_error(file, MC_ERR_CORRUPT, pool, "a part lies beyond the end of the file");
        if (part->offset + part->size <= front->size) {
            MC_TRY(mc_buf_duplicate(&part->data, front->bytes + part->offset, part->size, pool));
            continue;
        }
        numbers[asked] = i;
        asks[asked++] = (mc_range_ask){ .offset = part->offset, .size = part->size };
    }
    if (asked == 0)
        return MC_OK;
    MC_TRY(mc_ranges_send(asks, asked, file, front->validator, front->modified, pool));
    for (int i = 0; i < asked; i++)
        MC_TRY(judge_part(&parts[numbers[i]], &asks[i], file, pool));
    return MC_OK;
}

mc_error *
mc_ranges_fetch(void *out, mc_ranged_file *file, uint64_t offset, size_t size, apr_pool_t *pool)
{
    mc_range_part part = { .offset = offset, .size = size };
    if (size == 0)
        return MC_OK;
    MC_TRY(mc_ranges_fetch_all(&part, 1, file, pool));
    memcpy(out, part.data->data, size);
    return MC_OK;
}
