/* Messages: levels, the standard error log, and the checks of a request's context. */
#include "mapcache/ctx.h"

#include <apr_strings.h>
#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/account.h"
#include "base/clock.h"
#include "base/controls.h"

static const char *const level_names[] = { "emerg", "alert", "crit", "error", "warn", "notice", "info", "debug" };

/* Who is told of errors and warnings beside the log; NULL: nobody. */
static mc_log_tap *
log_tap(const mc_ctx *ctx, mc_log_level level)
{
    return level > MC_LOG_WARN || ctx->process == NULL ? NULL
                                                       : atomic_load_explicit(&ctx->process->tap, memory_order_acquire);
}

void
mc_log_write(const mc_ctx *ctx, mc_log_level level, const char *format, ...)
{
    const bool logged = ctx->log != NULL && level <= ctx->log->level;
    mc_log_tap *tap = log_tap(ctx, level);
    if (!logged && tap == NULL)
        return;
    va_list args;
    va_start(args, format);
    char *message = apr_pvsprintf(ctx->pool, format, args);
    va_end(args);
    mc_controls_blank(message);
    if (tap != NULL)
        tap(ctx, level, message);
    if (!logged)
        return;
    if (ctx->account != NULL)
        message = apr_pstrcat(ctx->pool, message, " [", mc_account_text(ctx->account, ctx->pool), "]", NULL);
    ctx->log->write(ctx->log->baton, level, message);
}

void
mc_log_error(const mc_ctx *ctx, mc_log_level level, const mc_error *error)
{
    const char *chain = mc_error_chain(error, ctx->pool);
    if (error != NULL && error->told && level < MC_LOG_INFO) {
        mc_log_tap *tap = log_tap(ctx, level);
        if (tap != NULL)
            tap(ctx, level, chain);
        level = MC_LOG_INFO;
    }
    mc_log_write(ctx, level, "%s", chain);
}

static void
write_stderr(void *baton, mc_log_level level, const char *message)
{
    (void)baton;
    apr_time_exp_t now;
    apr_time_t time = apr_time_now();
    apr_time_exp_lt(&now, time);
    char line[8192];
    int size = snprintf(line, sizeof(line), "[%s %s %02d %02d:%02d:%02d.%06d %d] [mapcache:%s] [pid %ld:tid %ld] %s\n",
                        apr_day_snames[now.tm_wday], apr_month_snames[now.tm_mon], now.tm_mday, now.tm_hour, now.tm_min,
                        now.tm_sec, now.tm_usec, now.tm_year + 1900, level_names[level], (long)getpid(),
                        syscall(SYS_gettid), message);
    if (size < 0)
        return;
    if ((size_t)size >= sizeof(line)) {
        size = (int)sizeof(line) - 1;
        line[size - 1] = '\n';
    }
    ssize_t written = write(STDERR_FILENO, line, (size_t)size);
    (void)written; /* there is nowhere left to complain */
}

const mc_log mc_log_stderr = { MC_LOG_WARN, write_stderr, NULL };

mc_error *
mc_ctx_check(mc_ctx *ctx, apr_pool_t *result_pool)
{
    if (mc_ctx_abandoned(ctx))
        return mc_error_create(result_pool, MC_ERR_UNAVAILABLE, "the client has gone");
    if (ctx->deadline != 0 && mc_clock_now() > ctx->deadline)
        return mc_error_create(result_pool, MC_ERR_UNAVAILABLE, "the request took longer than its deadline");
    return MC_OK;
}

apr_interval_time_t
mc_ctx_remaining(const mc_ctx *ctx, apr_interval_time_t otherwise)
{
    if (ctx->deadline == 0)
        return otherwise;
    apr_interval_time_t left = ctx->deadline - mc_clock_now();
    if (left < 0)
        return 0;
    return left < otherwise ? left : otherwise;
}
