/*
 * Errors as values. A function that can fail returns mc_error *; NULL (MC_OK) is success.
 * The kind alone decides the HTTP status and the OGC exception code; the table below is the one place for both.
 *
 * Example: a check that creates an error, and a function that passes the error up.
 *
 *     static mc_error *
 *     check_level(int level, int levels, apr_pool_t *pool)
 *     {
 *         if (level < 0 || level >= levels)
 *             return mc_error_create(pool, MC_ERR_NOT_FOUND, "level %d is not one of 0 to %d", level, levels - 1);
 *         return MC_OK;
 *     }
 *
 *     mc_error *
 *     check_levels(int first, int last, int levels, apr_pool_t *pool)
 *     {
 *         MC_TRY(check_level(first, levels, pool));
 *         MC_TRY(check_level(last, levels, pool));
 *         return MC_OK;
 *     }
 */
#ifndef MAPCACHE_ERROR_H
#define MAPCACHE_ERROR_H

#include <apr_pools.h>
#include <stdarg.h>
#include <stdbool.h>

/*
 * kind, HTTP status, OGC exception code (WMS 1.3.0 table E.1, OWS 1.1.0 table 25, WMTS 1.0.0 tables 24 and 30),
 * meaning. NULL as code: the message stands without a code.
 */
#define MC_ERROR_KINDS(X)                                                                                              \
    X(MISSING_PARAMETER, 400, "MissingParameterValue", "a mandatory request parameter is absent")                      \
    X(INVALID_PARAMETER, 400, "InvalidParameterValue", "a request parameter has a value that cannot be used")          \
    X(INVALID_DIMENSION, 400, "InvalidDimensionValue", "a dimension does not know the requested value")                \
    X(MISSING_DIMENSION, 400, "MissingDimensionValue", "a dimension without default value was not requested")          \
    X(INVALID_CRS, 400, "InvalidCRS", "no grid of the layer has the requested CRS (InvalidSRS in WMS 1.1.1)")          \
    X(INVALID_POINT, 400, "InvalidPoint", "I, J or X, Y lie outside the map")                                          \
    X(POINT_OUT_OF_RANGE, 404, "PointIJOutOfRange", "I or J lies outside the tile (WMTS)")                             \
    X(BAD_REQUEST, 400, NULL, "a malformed request of a service without exception codes")                              \
    X(LAYER_NOT_DEFINED, 404, "LayerNotDefined", "a layer that is not configured")                                     \
    X(STYLE_NOT_DEFINED, 404, "StyleNotDefined", "a style other than the default one")                                 \
    X(INVALID_FORMAT, 404, "InvalidFormat", "an output format that is not offered")                                    \
    X(NOT_QUERYABLE, 404, "LayerNotQueryable", "feature info of a layer whose source offers none")                     \
    X(TILE_OUT_OF_RANGE, 404, "TileOutOfRange", "row or column outside the tile matrix or the layer's limits")         \
    X(NOT_FOUND, 404, NULL, "no such path, or nothing to show")                                                        \
    X(OPERATION_NOT_SUPPORTED, 501, "OperationNotSupported", "an operation that the service does not offer")           \
    X(VERSION_NEGOTIATION, 400, "VersionNegotiationFailed", "none of the accepted versions is offered")                \
    X(CURRENT_UPDATE_SEQUENCE, 400, "CurrentUpdateSequence", "UPDATESEQUENCE equals the current one")                  \
    X(INVALID_UPDATE_SEQUENCE, 400, "InvalidUpdateSequence", "UPDATESEQUENCE is higher than the current one")          \
    X(UNAUTHORIZED, 401, NULL, "the token of a service is missing, or is another one")                                 \
    X(FORBIDDEN, 403, NULL, "the server refuses")                                                                      \
    X(METHOD_NOT_ALLOWED, 405, NULL, "an HTTP method other than GET, HEAD, POST")                                      \
    X(NOT_ACCEPTABLE, 406, NULL, "none of the accepted media types can be served")                                     \
    X(TOO_LARGE, 413, NULL, "a request body beyond its limit")                                                         \
    X(TOO_MANY, 429, NULL, "more requests without the token of a service than are looked at")                          \
    X(CONFIG, 500, NULL, "the configuration cannot be used")                                                           \
    X(IO, 500, NULL, "a file, store or library failed")                                                                \
    X(CORRUPT, 500, NULL, "stored or received bytes are not what they should be")                                      \
    X(LIMIT, 500, NULL, "an internal limit was reached")                                                               \
    X(NOT_BUILT, 501, "OperationNotSupported", "a configured service that this build does not have")                   \
    X(UPSTREAM, 502, NULL, "an origin or database answered with an error or not at all")                               \
    X(BUSY, 503, NULL, "more is asked for than can be done in time")                                                   \
    X(NO_MEMORY, 503, NULL, "an allocation failed or is beyond the budget")                                            \
    X(UNAVAILABLE, 503, NULL, "temporarily or by configuration not to be had")                                         \
    X(TIMEOUT, 504, NULL, "an origin did not answer before the deadline")

typedef enum mc_error_kind {
#define X(kind, status, code, meaning) MC_ERR_##kind,
    MC_ERROR_KINDS(X)
#undef X
} mc_error_kind;

typedef struct mc_error {
    mc_error_kind kind;
    const char *message; /* names the thing and the value, for people; never markup */
    const char *locator; /* name of the offending request parameter, or NULL */
    struct mc_error *cause;
    bool told; /* the log has it from another request (mc_error_repeats) */
} mc_error;

#define MC_OK ((mc_error *)0)
#define MC_CHECKED __attribute__((warn_unused_result))
#define MC_PRINTF(format_arg, first_arg) __attribute__((format(printf, format_arg, first_arg)))

/* Evaluates an expression of type mc_error * and returns it from the enclosing function unless it is MC_OK. */
#define MC_TRY(expr)                                                                                                   \
    do {                                                                                                               \
        mc_error *mc_try_error_ = (expr);                                                                              \
        if (__builtin_expect(mc_try_error_ != MC_OK, 0))                                                               \
            return mc_try_error_;                                                                                      \
    } while (0)

/* An invariant of our own code. Checked in release builds too; a violation is reported on stderr and stops the process.
 */
#define MC_ASSERT(condition)                                                                                           \
    (__builtin_expect(!(condition), 0) ? mc_assert_failed(#condition, __FILE__, __LINE__) : (void)0)

/* Creates an error in `pool`. The message is what a client may see: no file path, SQL or origin URL belongs into it. */
mc_error *mc_error_create(apr_pool_t *pool, mc_error_kind kind, const char *format, ...) MC_PRINTF(3, 4) MC_CHECKED;

/* As mc_error_create; `cause` (may be NULL) goes to the log with it, never to the client. */
mc_error *mc_error_wrap(apr_pool_t *pool, mc_error *cause, mc_error_kind kind, const char *format, ...)
    MC_PRINTF(4, 5) MC_CHECKED;

/* As mc_error_create, with the request parameter that is at fault (OWS locator). */
mc_error *mc_error_located(apr_pool_t *pool, mc_error_kind kind, const char *locator, const char *format, ...)
    MC_PRINTF(4, 5) MC_CHECKED;

/* Of an error that repeats what the log knows: a server that is left alone after a failure, another request's error.
 * Where the same message was passed within the last five seconds the error is marked, and mc_log_error writes it, and
 * what wraps it, at level info at most: the log does not grow with the requests while a server is away. Returns the
 * error. */
mc_error *mc_error_repeats(mc_error *error);

/* A deep copy in another pool, chain included. NULL gives NULL. */
mc_error *mc_error_copy(const mc_error *error, apr_pool_t *pool);

int mc_error_status(mc_error_kind kind);
const char *mc_error_code(mc_error_kind kind);
const char *mc_error_name(mc_error_kind kind);

/* The chain as one line for the log: "message: cause: its cause". Control characters are replaced. */
const char *mc_error_chain(const mc_error *error, apr_pool_t *pool);

/* For the rare caller that decides that an error does not matter; says so in the code. */
static inline void
mc_error_ignore(mc_error *error)
{
    (void)error;
}

_Noreturn void mc_assert_failed(const char *condition, const char *file, int line);

/* An apr_abortfunc_t for pools that have no parent which knows one: says on stderr that memory is exhausted and stops
 * the process, as whoever allocates counts on. Returns nothing. */
int mc_memory_exhausted(int status);

#endif
