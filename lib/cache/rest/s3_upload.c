/* Uploads of files: see s3_upload.h. */
#include "cache/rest/s3_upload.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/wait.h"
#include "cache/rest/rest_base.h"
#include "digest/digest.h"
#include "http/http_address.h"
#include "text/secret.h"
#include "text/text.h"

enum { PARTS_MOST = 10000, SENDS_MOST = 6, ANSWER_BYTES = 256 << 10 };

/* Microseconds before a request is sent again; doubles. */
#define FIRST_PAUSE (250 * 1000)
#define LONGEST_PAUSE (10 * APR_USEC_PER_SEC)
#define LONGEST_ABORT (30 * APR_USEC_PER_SEC)
/* Seconds for one part. */
#define CONNECT_TIMEOUT 30
#define PART_TIMEOUT 600

/* One request for the object. */
typedef struct upload_request {
    const char *method, *query; /* encoded and sorted; "" without */
    const void *body;
    size_t size;
    mc_http_reply reply;
} upload_request;

/* An upload under way. */
typedef struct upload_run {
    const mc_s3_upload *upload;
    const uint8_t *bytes;
    size_t size, part_size;
    int parts;
    const char *id;    /* of the upload, as a value of a query */
    const char **tags; /* ETags of its parts */
    mc_ctx *ctx;
    apr_pool_t *pool;
} upload_run;

static mc_error *
send_signed(upload_request *request, const mc_aws_secret *secret, const upload_run *run, apr_pool_t *pool)
{
    const mc_s3_upload *upload = run->upload;
    apr_table_t *headers = apr_table_make(pool, 8);
    const mc_sigv4 what = { .method = request->method,
                            .path = mc_http_path_of(upload->url),
                            .query = request->query,
                            .body = request->body,
                            .body_size = request->size,
                            .region = upload->aws->region,
                            .now = apr_time_now() };
    apr_table_setn(headers, "Host", mc_http_host_of(upload->url, pool));
    if (request->body != NULL)
        apr_table_setn(headers, "Content-Type", upload->type);
    mc_sigv4_sign(headers, &what, secret, pool);
    const mc_http_call call = {
        .method = request->method,
        .url = *request->query == '\0' ? upload->url : apr_pstrcat(pool, upload->url, "?", request->query, NULL),
        .headers = headers,
        .body = request->body,
        .body_size = request->size,
        .connect_timeout = CONNECT_TIMEOUT,
        .timeout = PART_TIMEOUT,
        .max_response = ANSWER_BYTES,
        .no_redirects = true, /* a signature is for one address */
        .store = true,
        .as_stored = true, /* the length of an object is that of its bytes */
    };
    return mc_http_send(&request->reply, run->ctx->process->http, &call, run->ctx, pool);
}

static const char *
text_of_answer(const upload_request *request, const char *element, apr_pool_t *pool)
{
    const mc_buf *body = request->reply.body;
    return mc_rest_xml_text((const char *)body->data, body->size, element, pool);
}

/* Whether the store has done it. Of a completion also status 200 may come with an error, once that has begun. */
static mc_error *
judge_upload_answer(bool *again, const upload_request *request, const upload_run *run, apr_pool_t *pool)
{
    const int status = request->reply.status;
    const char *code = text_of_answer(request, "Code", pool), *name = run->upload->name;
    *again = status == 429 || status == 500 || (status >= 502 && status <= 504) ||
             strcmp(code, "RequestTimeout") == 0 ||
             (status == 200 && (strcmp(code, "InternalError") == 0 || strcmp(code, "SlowDown") == 0));
    if ((status == 200 && *code == '\0') || (status == 204 && strcmp(request->method, "DELETE") == 0))
        return MC_OK;
    mc_error *cause = mc_error_create(pool, MC_ERR_UPSTREAM, "%s %s: status %d %s: %s", request->method,
                                      mc_hide_address_password(run->upload->url, pool), status, code,
                                      text_of_answer(request, "Message", pool));
    return *again ? mc_error_wrap(pool, cause, MC_ERR_UNAVAILABLE, "\"%s\": the store fails", name)
                  : mc_error_wrap(pool, cause, MC_ERR_UPSTREAM, "\"%s\": the store does not take the archive", name);
}

/* Sends the request, again after a passing failure, and with other credentials once those have ended. */
static mc_error *
send_upload(upload_request *request, const upload_run *run, apr_pool_t *pool)
{
    const mc_aws_options *aws = run->upload->aws;
    bool renewed = false;
    for (int attempt = 0;; attempt++) {
        const mc_aws_secret *secret;
        bool again = false;
        MC_TRY(mc_aws_credentials(&secret, &aws->chain, run->ctx, pool));
        mc_error *error = send_signed(request, secret, run, pool);
        if (error != MC_OK)
            again = error->kind == MC_ERR_UPSTREAM || error->kind == MC_ERR_TIMEOUT;
        else
            error = judge_upload_answer(&again, request, run, pool);
        if (error != MC_OK && request->reply.status >= 400 && !renewed &&
            mc_aws_options_renew(aws, secret, text_of_answer(request, "Code", pool)))
            again = renewed = true;
        if (error == MC_OK || !again || attempt + 1 >= SENDS_MOST || mc_ctx_abandoned(run->ctx))
            return error;
        if (!mc_wait_pause(mc_backoff(attempt, FIRST_PAUSE, LONGEST_PAUSE), run->ctx))
            return error;
    }
}

static const char *
tag_of_answer(const upload_request *request, const upload_run *run)
{
    const char *tag = apr_table_get(request->reply.headers, "ETag");
    return tag == NULL ? NULL : mc_xml_escape(apr_pstrdup(run->pool, tag), run->pool);
}

static mc_error *
send_parts_of_file(upload_run *run, apr_pool_t *scratch)
{
    for (int i = 0; i < run->parts; i++) {
        const size_t begin = (size_t)i * run->part_size;
        apr_pool_clear(scratch);
        MC_TRY(mc_ctx_check(run->ctx, run->pool));
        upload_request request = {
            .method = "PUT",
            .query = apr_psprintf(scratch, "partNumber=%d&uploadId=%s", i + 1, run->id),
            .body = run->bytes + begin,
            .size = run->size - begin < run->part_size ? run->size - begin : run->part_size,
        };
        mc_error *error = send_upload(&request, run, scratch);
        if (error != MC_OK)
            return mc_error_copy(error, run->pool);
        run->tags[i] = tag_of_answer(&request, run);
        if (run->tags[i] == NULL)
            return mc_error_create(run->pool, MC_ERR_UPSTREAM, "\"%s\": the store gives a part no ETag",
                                   run->upload->name);
    }
    return MC_OK;
}

/* The object that is there: MC_ERR_UPSTREAM where it has another size than the file. *tag: its ETag. */
static mc_error *
check_object_size(const char **tag, const upload_run *run)
{
    upload_request request = { .method = "HEAD", .query = "" };
    MC_TRY(send_upload(&request, run, run->pool));
    const char *length = apr_table_get(request.reply.headers, "Content-Length");
    int64_t size = -1;
    *tag = apr_table_get(request.reply.headers, "ETag");
    if (length == NULL || !mc_parse_int64(&size, length, 0, INT64_MAX) || (uint64_t)size != run->size)
        return mc_error_create(run->pool, MC_ERR_UPSTREAM,
                               "\"%s\": the object in the store is not the one that was sent", run->upload->name);
    return MC_OK;
}

/* The ETag of an object in parts, as S3 computes it: the MD5 of the MD5s of the parts, and their number. */
static const char *
tag_of_whole_object(const upload_run *run)
{
    uint8_t *sums = apr_palloc(run->pool, (size_t)run->parts * MC_MD5_BYTES), sum[MC_MD5_BYTES];
    char text[2 * MC_MD5_BYTES + 1];
    for (int i = 0; i < run->parts; i++) {
        const size_t begin = (size_t)i * run->part_size;
        const size_t rest = run->size - begin;
        mc_md5(sums + (size_t)i * MC_MD5_BYTES, run->bytes + begin, rest < run->part_size ? rest : run->part_size);
    }
    mc_md5(sum, sums, (size_t)run->parts * MC_MD5_BYTES);
    mc_hex_text(text, sum, sizeof(sum));
    return apr_psprintf(run->pool, "\"%s-%d\"", text, run->parts);
}

/* A completion that is sent twice is told that there is no such upload. The first one was carried out where the object
 * has the ETag of our parts; an object of the same size may be an older one. */
static bool
is_upload_completed(const upload_run *run)
{
    const char *tag;
    return check_object_size(&tag, run) == MC_OK && tag != NULL && strcmp(tag, tag_of_whole_object(run)) == 0;
}

static mc_error *
complete_upload(const upload_run *run)
{
    mc_buf *list = mc_buf_attach(mc_buf_create(0, PARTS_MOST * 512), run->pool);
    MC_TRY(mc_buf_append(list, "<CompleteMultipartUpload>", 25, run->pool));
    for (int i = 0; i < run->parts; i++) {
        const char *part =
            apr_psprintf(run->pool, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i + 1, run->tags[i]);
        MC_TRY(mc_buf_append(list, part, strlen(part), run->pool));
    }
    MC_TRY(mc_buf_append(list, "</CompleteMultipartUpload>", 26, run->pool));
    upload_request request = { .method = "POST",
                               .query = apr_pstrcat(run->pool, "uploadId=", run->id, NULL),
                               .body = list->data,
                               .size = list->size };
    mc_error *error = send_upload(&request, run, run->pool);
    return error != MC_OK && request.reply.status == 404 && is_upload_completed(run) ? MC_OK : error;
}

/* What is in the store of an upload that is not completed costs money. Also after an interrupt, for a while. */
static void
abort_upload(const upload_run *run)
{
    mc_ctx own = *run->ctx;
    upload_run last = *run;
    own.abandoned = NULL;
    own.deadline = mc_clock_now() + LONGEST_ABORT;
    last.ctx = &own;
    upload_request request = { .method = "DELETE", .query = apr_pstrcat(run->pool, "uploadId=", run->id, NULL) };
    mc_error *error = send_upload(&request, &last, run->pool);
    if (error != MC_OK)
        mc_log_error(&own, MC_LOG_WARN, error);
}

static mc_error *
upload_in_parts(upload_run *run)
{
    apr_pool_t *scratch;
    upload_request request = { .method = "POST", .query = "uploads=", .body = "", .size = 0 };
    MC_TRY(send_upload(&request, run, run->pool));
    const mc_buf *body = request.reply.body;
    const char *id = mc_rest_xml_value((const char *)body->data, body->size, "UploadId", run->pool);
    if (*id == '\0')
        return mc_error_create(run->pool, MC_ERR_UPSTREAM, "\"%s\": the store takes no object in parts",
                               run->upload->name);
    run->id = mc_aws_form_value(id, run->pool);
    run->tags = apr_pcalloc(run->pool, sizeof(*run->tags) * (size_t)run->parts);
    apr_pool_create(&scratch, run->pool);
    mc_error *error = send_parts_of_file(run, scratch);
    apr_pool_destroy(scratch);
    if (error == MC_OK)
        error = complete_upload(run);
    if (error != MC_OK)
        abort_upload(run);
    return error;
}

static mc_error *
upload_mapped_file(upload_run *run)
{
    const size_t least = (run->size + PARTS_MOST - 1) / PARTS_MOST;
    run->part_size = least > MC_S3_PART_BYTES ? least : MC_S3_PART_BYTES;
    run->parts = (int)((run->size + run->part_size - 1) / run->part_size);
    upload_request whole = { .method = "PUT", .query = "", .body = run->bytes, .size = run->size };
    const char *tag;
    MC_TRY(run->parts > 1 ? upload_in_parts(run) : send_upload(&whole, run, run->pool));
    return check_object_size(&tag, run);
}

static mc_error *
upload_file_error(const char *path, apr_pool_t *pool)
{
    char reason[128];
    return mc_error_create(pool, MC_ERR_IO, "%s: %s", path, strerror_r(errno, reason, sizeof(reason)));
}

mc_error *
mc_s3_upload_file(const mc_s3_upload *upload, const char *path, mc_ctx *ctx, apr_pool_t *pool)
{
    struct stat info;
    if (ctx->process == NULL || ctx->process->http == NULL)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "requests to stores are switched off");
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &info) != 0 || info.st_size == 0) {
        mc_error *error = file >= 0 && info.st_size == 0
                              ? mc_error_create(pool, MC_ERR_IO, "%s: the file is empty", path)
                              : upload_file_error(path, pool);
        if (file >= 0)
            close(file);
        return error;
    }
    const size_t size = (size_t)info.st_size;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (bytes == MAP_FAILED)
        return upload_file_error(path, pool);
    upload_run run = { .upload = upload, .bytes = bytes, .size = size, .ctx = ctx, .pool = pool };
    mc_error *error = upload_mapped_file(&run);
    munmap(bytes, size);
    return error;
}
