/*
 * Dimensions that ask a database (docs/reference/configuration.md 7.4): what they have in common. The front (query.c)
 * takes a requested value apart (times), remembers answers, bounds them; a back end only runs one statement with bound
 * values and hands over rows.
 *
 * A back end is one file: a config struct that begins with mc_query_config, a key table that begins with MC_QUERY_KEYS,
 * a struct that begins with mc_query_dimension, `ask`, and an mc_dimension_ops that has MC_QUERY_OPS.
 */
#ifndef MC_DIMENSION_QUERY_H
#define MC_DIMENSION_QUERY_H

#include <stdatomic.h>

#include "db/sqlite/handles.h"
#include "dimension/dimension_base.h"

/*
 * The bind parameters, in the order in which MapCache replaces their names in PostgreSQL statements.
 * X(bit, name as it stands in a statement)
 */
#define MC_QUERY_PARAMETERS(X)                                                                                         \
    X(TILESET, ":tileset")                                                                                             \
    X(DIM, ":dim")                                                                                                     \
    X(GRIDSRS, ":gridsrs")                                                                                             \
    X(MINX, ":minx")                                                                                                   \
    X(MAXX, ":maxx")                                                                                                   \
    X(MINY, ":miny")                                                                                                   \
    X(MAXY, ":maxy")                                                                                                   \
    X(START, ":start_timestamp")                                                                                       \
    X(END, ":end_timestamp")

typedef enum mc_query_parameter {
#define X(bit, name) MC_QUERY_##bit,
    MC_QUERY_PARAMETERS(X)
#undef X
        MC_QUERY_PARAMETER_COUNT
} mc_query_parameter;

/* The names, by mc_query_parameter. */
extern const char *const mc_query_parameter_names[MC_QUERY_PARAMETER_COUNT];

/* What the parameters stand for in one question. */
typedef struct mc_query_binds {
    const char *tileset;      /* never NULL */
    const char *dim;          /* the whole requested value; NULL (SQL NULL) in list and default queries */
    const char *gridsrs;      /* <srs> of the grid; NULL (SQL NULL) in list and default queries */
    mc_extent extent;         /* in the grid's SRS, x before y; -DBL_MAX, DBL_MAX where it is unbounded */
    bool timed;               /* the next two are set; else unbound (sqlite) or 0 (postgresql, elasticsearch) */
    int64_t start_us, end_us; /* microseconds since 1970, UTC: start <= t < end */
} mc_query_binds;

/* By mc_query_parameter: for back ends that have texts only. NULL: SQL NULL. `unit_us`: 1000000 for seconds, 1000 for
 * milliseconds; a fraction of the unit is written only where there is one. `coordinate` writes a coordinate. */
void mc_query_texts(const char *texts[MC_QUERY_PARAMETER_COUNT], const mc_query_binds *binds, int64_t unit_us,
                    const char *(*coordinate)(double value, apr_pool_t *pool), apr_pool_t *pool);

/* Seconds (or milliseconds, ...) of a time of mc_query_binds. False where it is not a whole number of them: then
 * *whole is rounded down. */
bool mc_query_whole_time(int64_t *whole, int64_t time_us, int64_t unit_us);

/* INSERT: a statement that gives no rows and is never remembered. */
typedef enum mc_query_kind {
    MC_QUERY_VALIDATE,
    MC_QUERY_LIST,
    MC_QUERY_DEFAULT,
    MC_QUERY_INSERT,
    MC_QUERY_KINDS
} mc_query_kind;

/* Statement and what it depends on; made by mc_query_set_up. */
typedef struct mc_query_statement {
    const char *text;     /* as configured; NULL: there is none */
    unsigned uses;        /* bits 1 << mc_query_parameter of names that stand anywhere in the text */
    const char *identity; /* what answers are remembered under, before the bound values; unique among all back ends */
    size_t identity_size;
} mc_query_statement;

/* The first columns of the answer to one question. */
typedef struct mc_query_rows mc_query_rows;

/*
 * Adds the first column of a row; `text` is copied and must have no NUL before `size`; NULL (an SQL NULL) is not a row.
 * MC_ERR_LIMIT above <max_entries> rows, or where a text is longer than 4096 bytes: stop reading then, and return it.
 */
mc_error *mc_query_rows_add(mc_query_rows *rows, const char *text, size_t size) MC_CHECKED;

/* Questions of one statement that the back end is to answer on one connection. */
typedef struct mc_query_batch {
    mc_query_kind kind;
    const mc_query_statement *statement;
    const mc_query_binds *binds; /* count of them */
    mc_query_rows *const *rows;  /* of binds[i] */
    int count;
    const mc_stamp *stamp; /* of dimension->path, taken before; NULL where there is none */
    bool fleeting; /* set by the back end: the answers hold for this moment only (the statement reads a clock) */
} mc_query_batch;

typedef struct mc_query_dimension mc_query_dimension;
struct mc_query_dimension {
    mc_dimension base; /* first */
    /*
     * Runs the statement for each of the batch's bindings. Values are always bound, never part of the text. Ends with
     * MC_ERR_UNAVAILABLE at the deadline of ctx (or once mc_ctx_check says so). Messages of errors are for clients: no
     * statement, path or host in them; those go into the cause. Called from any thread, several at a time.
     */
    mc_error *(*ask)(mc_query_dimension *dimension, mc_query_batch *batch, mc_ctx *ctx, apr_pool_t *pool);
    mc_query_statement statements[MC_QUERY_KINDS];
    int max_entries;
    const char *path;             /* of the database where it is a file; else NULL */
    bool by_stamp;                /* <remember>: as long as the file's stamp stays the same */
    apr_interval_time_t remember; /* <remember>, else: so long; 0: once in a request */
    _Atomic apr_time_t forgotten; /* mc_clock_now(): what was asked before then is asked again, but of a file */
};

/* Statements that not every kind has; NULL: there is none. */
typedef struct mc_query_extras {
    const char *default_query, *insert_query;
} mc_query_extras;

/* The row of the key table of kinds whose database can be written; `member` is the struct's. */
#define MC_QUERY_INSERT_KEY(member)                                                                                    \
    MC_KEY_TEXT("insert_query", member,                                                                                \
                "Run by `mapcache ingest` for each value whose tiles it has stored, so that validate_query and "       \
                "list_query find it. Bound as there; the box is that of the images. To be run twice without harm.",    \
                .flags = MC_KEY_OURS)

/* What is read from the element; kinds put it first into their own. */
typedef struct mc_query_config {
    mc_dimension_common common; /* first */
    const char *validate_query, *list_query;
    const char *remember;
    int max_entries;
} mc_query_config;

#define MC_QUERY_MAX_ENTRIES 10000

/* The first rows of a kind's key table. */
#define MC_QUERY_KEYS                                                                                                  \
    MC_DIMENSION_COMMON_KEYS,                                                                                          \
        MC_KEY_TEXT("validate_query", offsetof(mc_query_config, validate_query),                                       \
                    "Turns a requested value into the ordered values it stands for, the first column of each row. "    \
                    "Bound: :dim, "                                                                                    \
                    ":tileset, :gridsrs, :minx, :miny, :maxx, :maxy, :start_timestamp, :end_timestamp.",               \
                    .flags = MC_KEY_REQUIRED),                                                                         \
        MC_KEY_TEXT("list_query", offsetof(mc_query_config, list_query), "All values, for capabilities.",              \
                    .flags = MC_KEY_REQUIRED),                                                                         \
        MC_KEY_TEXT("remember", offsetof(mc_query_config, remember),                                                   \
                    "How long an answer may be used again: seconds, or (sqlite, time) `file`, until the file "         \
                    "changes. Default: "                                                                               \
                    "`file` for sqlite and time, 0 for the others, which is once in a request.",                       \
                    .flags = MC_KEY_OURS),                                                                             \
        MC_KEY_INT("max_entries", offsetof(mc_query_config, max_entries),                                              \
                   "More values than this in one answer are an error.", .flags = MC_KEY_OURS, .min = 1,                \
                   .max = 1000000, .fallback = "10000")

/*
 * Fills what the front needs after mc_config_read. `source` tells the back end's databases apart (file, connection,
 * URL): together with the type and the statements it is the identity of remembered answers. `is_file`: it is the path
 * of a file, whose stamp answers may be remembered by. False after a complaint that
 * refuses the configuration. base.ops is set by the caller of from_config, dimension->ask by the kind.
 */
bool mc_query_set_up(mc_query_dimension *dimension, const mc_query_config *config, const char *source, bool is_file,
                     const mc_query_extras *extras, const mc_node *node, mc_build *build);

/* The members of mc_dimension_ops that are the same for all. */
#define MC_QUERY_OPS                                                                                                   \
    .resolve_all = mc_query_resolve_all, .list = mc_query_list, .ask_default = mc_query_default,                       \
    .changed = mc_query_changed, .by_extent = mc_query_by_extent, .forget = mc_query_forget, .from_backend = true

mc_error *mc_query_resolve_all(apr_array_header_t **values, mc_dimension *base, const mc_dimension_query *queries,
                               int count, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_query_list(apr_array_header_t **values, mc_dimension *base, const char *tileset, mc_ctx *ctx,
                        apr_pool_t *pool) MC_CHECKED;
mc_error *mc_query_default(const char **value, mc_dimension *base, const char *tileset, mc_ctx *ctx,
                           apr_pool_t *pool) MC_CHECKED;
bool mc_query_by_extent(const mc_dimension *base);

/* mc_dimension_ops.forget */
void mc_query_forget(mc_dimension *base);
apr_time_t mc_query_changed(const mc_dimension *base);

/* The member `insert` of mc_dimension_ops, of kinds that have MC_QUERY_INSERT_KEY. */
mc_error *mc_query_insert(bool *inserted, mc_dimension *base, const mc_dimension_query *query, mc_ctx *ctx,
                          apr_pool_t *pool) MC_CHECKED;

#endif
