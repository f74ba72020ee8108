/* Errors: creation, copies between pools, the one table from kind to status and code. */
#include "mapcache/error.h"

#include <apr_strings.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/controls.h"
#include "base/hash.h"

/* Microseconds from one line of the log to the next that says the same; and how many messages are told apart. */
#define TELL_EVERY (5 * APR_USEC_PER_SEC)
enum { MESSAGES = 64 };

static mc_error *
error_vcreate(apr_pool_t *pool, mc_error *cause, mc_error_kind kind, const char *locator, const char *format,
              va_list args)
{
    mc_error *error = apr_pcalloc(pool, sizeof(*error));
    error->kind = kind;
    error->locator = locator == NULL ? NULL : apr_pstrdup(pool, locator);
    error->message = apr_pvsprintf(pool, format, args);
    error->cause = cause;
    error->told = cause != NULL && cause->told;
    return error;
}

mc_error *
mc_error_create(apr_pool_t *pool, mc_error_kind kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mc_error *error = error_vcreate(pool, NULL, kind, NULL, format, args);
    va_end(args);
    return error;
}

mc_error *
mc_error_wrap(apr_pool_t *pool, mc_error *cause, mc_error_kind kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mc_error *error = error_vcreate(pool, cause, kind, NULL, format, args);
    va_end(args);
    return error;
}

mc_error *
mc_error_located(apr_pool_t *pool, mc_error_kind kind, const char *locator, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mc_error *error = error_vcreate(pool, NULL, kind, locator, format, args);
    va_end(args);
    return error;
}

mc_error *
mc_error_repeats(mc_error *error)
{
    static _Atomic apr_time_t told[MESSAGES]; /* when, by a hash of the message; mc_clock_now() */
    if (error == NULL)
        return error;
    _Atomic apr_time_t *last = &told[mc_hash64(error->message, strlen(error->message), 0) % MESSAGES];
    apr_time_t before = atomic_load(last), now = mc_clock_now();
    bool again = before != 0 && now < before + TELL_EVERY;
    error->told = again || !atomic_compare_exchange_strong(last, &before, now);
    return error;
}

mc_error *
mc_error_copy(const mc_error *error, apr_pool_t *pool)
{
    if (error == NULL)
        return MC_OK;
    mc_error *copy = apr_pmemdup(pool, error, sizeof(*error));
    copy->message = apr_pstrdup(pool, error->message);
    copy->locator = error->locator == NULL ? NULL : apr_pstrdup(pool, error->locator);
    copy->cause = mc_error_copy(error->cause, pool);
    return copy;
}

static const struct {
    int status;
    const char *code;
    const char *name;
} kinds[] = {
#define X(kind, status, code, meaning) { status, code, #kind },
    MC_ERROR_KINDS(X)
#undef X
};

int
mc_error_status(mc_error_kind kind)
{
    MC_ASSERT((size_t)kind < sizeof(kinds) / sizeof(kinds[0]));
    return kinds[kind].status;
}

const char *
mc_error_code(mc_error_kind kind)
{
    MC_ASSERT((size_t)kind < sizeof(kinds) / sizeof(kinds[0]));
    return kinds[kind].code;
}

const char *
mc_error_name(mc_error_kind kind)
{
    MC_ASSERT((size_t)kind < sizeof(kinds) / sizeof(kinds[0]));
    return kinds[kind].name;
}

const char *
mc_error_chain(const mc_error *error, apr_pool_t *pool)
{
    if (error == NULL)
        return "no error";
    char *text = apr_pstrdup(pool, error->message);
    for (const mc_error *cause = error->cause; cause != NULL; cause = cause->cause)
        text = apr_pstrcat(pool, text, ": ", cause->message, NULL);
    return mc_controls_blank(text);
}

int
mc_memory_exhausted(int status)
{
    (void)status;
    fputs("mapcache: no memory is left\n", stderr);
    abort();
}

_Noreturn void
mc_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "mapcache: broken invariant at %s:%d: %s\n", file, line, condition);
    abort();
}
