/* Plain CGI: see plain.h. Everything happens on the one thread that the process has. */
#include "plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <apr_strings.h>

#include "exchange.h"
#include "text/text.h"

static apr_table_t *
variables_of_environment(apr_pool_t *pool)
{
    apr_table_t *variables = apr_table_make(pool, 40);
    for (char **entry = environ; *entry != NULL; entry++) {
        const char *equals = strchr(*entry, '=');
        if (equals != NULL)
            apr_table_addn(variables, apr_pstrmemdup(pool, *entry, (size_t)(equals - *entry)), equals + 1);
    }
    return variables;
}

static mc_error *
read_stdin_body(mc_buf **body, void *baton, size_t limit, apr_pool_t *pool)
{
    const char *length = apr_table_get(baton, "CONTENT_LENGTH");
    int64_t expected = 0;
    if (length != NULL && *length != '\0' && !mc_parse_int64(&expected, length, 0, INT64_MAX))
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "CONTENT_LENGTH is not a length: %s", length);
    if ((uint64_t)expected > limit)
        return mc_error_create(pool, MC_ERR_TOO_LARGE, "the request's body is larger than %lu bytes",
                               (unsigned long)limit);
    mc_buf *buf = mc_buf_attach(mc_buf_create(0, limit), pool);
    MC_TRY(mc_buf_reserve(buf, (size_t)expected, pool));
    while (buf->size < (size_t)expected) {
        ssize_t size = read(STDIN_FILENO, buf->data + buf->size, (size_t)expected - buf->size);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return mc_error_create(pool, MC_ERR_BAD_REQUEST, "the request's body ended early");
        buf->size += (size_t)size;
    }
    *body = buf;
    return MC_OK;
}

static bool
write_stdout_vectors(struct iovec *vectors, int count)
{
    while (count > 0) {
        ssize_t written = writev(STDOUT_FILENO, vectors, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        size_t left = (size_t)written;
        while (count > 0 && left >= vectors->iov_len) {
            left -= vectors->iov_len;
            vectors++;
            count--;
        }
        if (count > 0) {
            vectors->iov_base = (uint8_t *)vectors->iov_base + left;
            vectors->iov_len -= left;
        }
    }
    return true;
}

int
mc_plain_run(mc_generations *generations, apr_pool_t *pool)
{
    apr_table_t *variables = variables_of_environment(pool);
    const mc_exchange exchange = { .variables = variables, .read_body = read_stdin_body, .read_body_baton = variables };
    mc_reply reply;
    mc_exchange_respond(&reply, generations, &exchange, 0, pool);
    struct iovec vectors[2] = { { reply.head, reply.head_size },
                                { (uint8_t *)(uintptr_t)reply.body, reply.body_size } };
    return write_stdout_vectors(vectors, reply.body_size > 0 ? 2 : 1) ? EXIT_SUCCESS : EXIT_FAILURE;
}
