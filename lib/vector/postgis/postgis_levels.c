/* See postgis_levels.h. */
#include "vector/postgis/postgis_levels.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/workers.h"
#include "text/text.h"
#include "vector/levels/level_choice.h"

/* For so long no map asks again which overviews there are. */
#define LEVELS_HOLD apr_time_from_sec(10)

/* Styles, and rules of vector tiles, whose levels are known at a time. */
enum { STYLES_MAX = 4 };

typedef struct known_level {
    const char *name;
    bool logged; /* the change log says what is old in it */
} known_level;

/* What was found at one time. Maps that read a level hold the set. */
typedef struct level_set {
    _Atomic unsigned references;
    apr_pool_t *pool; /* a root pool of its own */
    uint64_t style;
    known_level levels[MC_LEVELS_MAX]; /* the finest first */
    mc_level_range ranges[MC_LEVELS_MAX];
    int count;
} level_set;

/* What is known for one style. */
typedef struct style_levels {
    level_set *set;   /* NULL: not asked so far */
    apr_time_t asked; /* 0: to be asked for */
    uint64_t told;    /* hash of the last reason that was logged */
} style_levels;

struct mc_levels {
    const mc_postgis_config *config;
    const char *layer;
    pthread_mutex_t lock; /* of all below */
    style_levels styles[STYLES_MAX];
};

static void
release_set(level_set *set)
{
    if (set != NULL && atomic_fetch_sub(&set->references, 1) == 1)
        mc_task_pool_release(set->pool);
}

static apr_status_t
close_levels(void *data)
{
    mc_levels *levels = data;
    for (int i = 0; i < STYLES_MAX; i++)
        release_set(levels->styles[i].set);
    pthread_mutex_destroy(&levels->lock);
    return APR_SUCCESS;
}

mc_levels *
mc_levels_create(const mc_postgis_config *config, const char *layer, apr_pool_t *pool)
{
    mc_levels *made = apr_pcalloc(pool, sizeof(*made));
    made->config = config;
    made->layer = layer;
    pthread_mutex_init(&made->lock, NULL);
    apr_pool_cleanup_register(pool, made, close_levels, apr_pool_cleanup_null);
    return made;
}

void
mc_levels_forget(mc_levels *levels)
{
    pthread_mutex_lock(&levels->lock);
    for (int i = 0; i < STYLES_MAX; i++)
        levels->styles[i].asked = 0;
    pthread_mutex_unlock(&levels->lock);
}

void
mc_levels_give(mc_level_use *use)
{
    release_set(use->set);
    *use = (mc_level_use){ 0 };
}

/* What is known for a style, else what was asked for longest ago. With the lock. */
static style_levels *
find_style_levels(mc_levels *levels, uint64_t style)
{
    style_levels *oldest = &levels->styles[0];
    for (int i = 0; i < STYLES_MAX; i++) {
        style_levels *one = &levels->styles[i];
        if (one->set != NULL && one->set->style == style)
            return one;
        if (one->set == NULL || (oldest->set != NULL && one->asked < oldest->asked))
            oldest = one;
    }
    return oldest;
}

/* Once for each reason that is another than the style's last one; "" is none. */
static void
tell_reason(mc_levels *levels, uint64_t style, const char *reason, mc_ctx *ctx)
{
    uint64_t hash = mc_hash64(reason, strlen(reason), 0);
    pthread_mutex_lock(&levels->lock);
    style_levels *of = find_style_levels(levels, style);
    bool again = of->told == hash;
    of->told = hash;
    pthread_mutex_unlock(&levels->lock);
    if (!again && *reason != '\0')
        mc_log_write(ctx, MC_LOG_WARN, "layer \"%s\" is drawn without its overviews: %s", levels->layer, reason);
}

/* ---- Which overviews there are ---- */

static const char list_sql[] =
    "SELECT l.name, l.resolution::text, l.metres_per_unit::text, (l.reader IS NOT NULL)::text, "
    "(l.style = $3 AND l.format = $4)::text, (l.srid = $5)::text, l.until::text FROM " MC_LEVELS_SCHEMA ".levels l "
    "WHERE l.relation = to_regclass($1)::oid AND l.geometry = $2 ORDER BY l.resolution";

static void
add_level(level_set *set, const mc_postgres_row *row)
{
    known_level level = { .logged = strcmp(row->fields[3].data, "true") == 0 };
    mc_level_range range;
    if (set->count == MC_LEVELS_MAX || !mc_parse_double(&range.resolution, row->fields[1].data) ||
        !mc_parse_double(&range.metres_per_unit, row->fields[2].data) ||
        !mc_parse_double(&range.until, row->fields[6].data))
        return;
    set->ranges[set->count] = range;
    level.name = apr_pstrdup(set->pool, row->fields[0].data);
    set->levels[set->count++] = level;
}

/* *reason: why levels that are there are not used. */
static mc_error *
read_levels(level_set *set, const char **reason, const mc_levels *levels, const mc_postgis_column *column, mc_ctx *ctx,
            apr_pool_t *pool)
{
    const mc_postgres_param params[] = {
        { .value = mc_sql_table(levels->config->table, pool), .type = MC_POSTGRES_TEXT },
        { .value = column->name, .type = MC_POSTGRES_TEXT },
        { .value = apr_psprintf(pool, "%" APR_INT64_T_FMT, (apr_int64_t)set->style), .type = MC_POSTGRES_INT8 },
        { .value = apr_itoa(pool, MC_LEVELS_FORMAT), .type = MC_POSTGRES_INT8 },
        { .value = apr_itoa(pool, column->srid), .type = MC_POSTGRES_INT8 },
    };
    const mc_postgres_query query = {
        .connection = levels->config->connection, .sql = list_sql, .params = params, .param_count = 5
    };
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row = NULL;
    bool other_style = false, other_srid = false;
    mc_error *error = mc_postgres_start(&result, ctx->process->postgres, &query, ctx, pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL && row->columns == 7) {
        bool same_style = strcmp(row->fields[4].data, "true") == 0,
             same_srid = strcmp(row->fields[5].data, "true") == 0;
        other_style |= !same_style;
        other_srid |= !same_srid;
        if (same_style && same_srid)
            add_level(set, row);
    }
    mc_postgres_end(result);
    if (set->count == 0)
        *reason = other_srid ? "they have another SRID"
                  : other_style
                      ? "they were built for another style, for other vector tiles, or by another version of mapcache"
                      : "";
    return error;
}

/* The table of levels may be read. */
static mc_error *
has_levels(bool *has, const mc_levels *levels, mc_ctx *ctx, apr_pool_t *pool)
{
    const char **values;
    static const char sql[] = "SELECT coalesce((SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege("
                              "c.oid, 'SELECT') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE "
                              "n.nspname = '" MC_LEVELS_SCHEMA "' AND c.relname = 'levels'), false)::text";
    MC_TRY(mc_postgis_first_row(&values, 1, levels->config, sql, NULL, 0, ctx, pool));
    *has = values != NULL && strcmp(values[0], "true") == 0;
    return MC_OK;
}

/* A new set, which the caller puts in the place of the old one. *reason: why levels are not used. */
static level_set *
ask_levels(const char **reason, const mc_levels *levels, const mc_postgis_column *column, uint64_t style, mc_ctx *ctx,
           apr_pool_t *pool)
{
    apr_pool_t *own = mc_task_pool_acquire();
    level_set *made = apr_pcalloc(own, sizeof(*made));
    bool has = false;
    made->pool = own;
    made->style = style;
    atomic_init(&made->references, 1);
    mc_error *error = has_levels(&has, levels, ctx, pool);
    if (error == MC_OK && has)
        error = read_levels(made, reason, levels, column, ctx, pool);
    if (error != MC_OK) {
        *reason = mc_error_chain(error, pool);
        made->count = 0;
    }
    return made;
}

/* The style's set, with a reference. One that is being asked for is used as it was. */
static level_set *
take_set(mc_levels *levels, const mc_postgis_column *column, uint64_t style, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *reason = "";
    pthread_mutex_lock(&levels->lock);
    apr_time_t now = mc_clock_now();
    style_levels *of = find_style_levels(levels, style);
    level_set *set = of->set != NULL && of->set->style == style ? of->set : NULL;
    bool known = set != NULL && of->asked != 0 && now - of->asked < LEVELS_HOLD;
    if (known)
        atomic_fetch_add(&set->references, 1);
    else if (set != NULL)
        of->asked = now;
    pthread_mutex_unlock(&levels->lock);
    if (known)
        return set;
    set = ask_levels(&reason, levels, column, style, ctx, pool);
    atomic_fetch_add(&set->references, 1);
    pthread_mutex_lock(&levels->lock);
    of = find_style_levels(levels, style);
    level_set *old = of->set;
    if (old == NULL || old->style != style)
        of->told = 0;
    of->set = set;
    of->asked = now;
    pthread_mutex_unlock(&levels->lock);
    release_set(old);
    if (set->count == 0)
        tell_reason(levels, style, reason, ctx);
    return set;
}

/* ---- Whether one may be used for a map ---- */

/* In words, "" for yes, CHANGED where only this map may not. */
#define CHANGED "changed"
#define OF_THE_LEVEL "ELSE '' END FROM " MC_LEVELS_SCHEMA ".levels l WHERE l.name = $1"

/* The boxes are compared with some room: the map's is given in eight bytes, as the log has them. */
static const char static_sql[] = "SELECT CASE " MC_LEVELS_UNFIT("$6") "WHEN $2 > $4 OR $3 > $5 THEN '' " OF_THE_LEVEL;
static const char logged_sql[] = "SELECT CASE " MC_LEVELS_UNFIT("$6") MC_LEVELS_UNLOGGED
    "WHEN EXISTS (SELECT FROM " MC_LEVELS_UNKNOWN_CHANGES "AND (c.minx IS NULL OR c.srid <> l.srid "
    "OR NOT (c.minx > $4 OR c.maxx < $2 OR c.miny > $5 OR c.maxy < $3))) THEN '" CHANGED "' " OF_THE_LEVEL;

static mc_postgres_param
coordinate_param(double value, apr_pool_t *pool)
{
    return (mc_postgres_param){ .value = mc_double_text('g', 17, value, pool), .type = MC_POSTGRES_FLOAT8 };
}

/* Why the level is not used for the map; "": it is; CHANGED. */
static mc_error *
ask_level(const char **reason, const mc_levels *levels, const known_level *level, const mc_extent *box, mc_ctx *ctx,
          apr_pool_t *pool)
{
    const mc_postgres_param params[] = {
        { .value = level->name, .type = MC_POSTGRES_TEXT },
        coordinate_param(box->minx, pool),
        coordinate_param(box->miny, pool),
        coordinate_param(box->maxx, pool),
        coordinate_param(box->maxy, pool),
        { .value = mc_sql_table(levels->config->table, pool), .type = MC_POSTGRES_TEXT },
    };
    const char **values;
    const char *sql = level->logged ? logged_sql : static_sql;
    MC_TRY(mc_postgis_first_row(&values, 1, levels->config, sql, params, 6, ctx, pool));
    *reason = values == NULL ? CHANGED : values[0];
    return MC_OK;
}

/* Whether any level might serve the map: its CRS is the table's, its pixels are square. */
static bool
may_have_levels(const mc_levels *levels, const mc_postgis_column *column, const mc_feature_query *query)
{
    return mc_level_may_serve(query) && levels->config->table != NULL && column->stored && !column->geography &&
           column->srid != 0 && mc_crs_epsg(query->srs, NULL) == column->srid;
}

mc_level_use
mc_levels_take(mc_levels *levels, const mc_postgis_column *column, const mc_feature_query *query, mc_ctx *ctx,
               apr_pool_t *pool)
{
    mc_level_use use = { 0 };
    const char *reason = "";
    if (!may_have_levels(levels, column, query))
        return use;
    level_set *set = use.set = take_set(levels, column, query->style, ctx, pool);
    const int found = mc_level_find(set->ranges, set->count, query);
    const known_level *level = found < 0 ? NULL : &set->levels[found];
    mc_error *error = level == NULL ? MC_OK : ask_level(&reason, levels, level, &query->box, ctx, pool);
    if (error != MC_OK)
        reason = mc_error_chain(error, pool);
    use.srid = column->srid;
    if (level != NULL && *reason == '\0')
        use.name = level->name;
    if (level != NULL && strcmp(reason, CHANGED) != 0)
        tell_reason(levels, query->style, reason, ctx);
    if (use.name == NULL)
        mc_levels_give(&use);
    return use;
}
