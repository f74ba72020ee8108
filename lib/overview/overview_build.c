/* Building the levels of a table: one transaction, which reads one snapshot and makes all of them. */
#include <apr_strings.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/paint/sieve.h"
#include "grid/earth.h"
#include "overview/overview_private.h"
#include "text/text.h"

/* Pixels of the table for each row, or for so many bytes of vertices: where a pixel has less, a map has few rows and
 * few vertices, and needs no overview. */
#define PIXELS_FOR_ROW 16
/* How many features begin in a pixel is counted where the table has so many pixels for each row, or less. */
#define CROWD_PIXELS_FOR_ROW 4
#define BYTES_FOR_PIXEL 32
/* A level is kept where it has at most this part of the bytes of the next finer one. */
#define WORTH 0.8
/* The same where nothing is left out but vertices: the finer one serves both. */
#define WORTH_OF_VERTICES 0.5
/* Against the table itself, a single level and all of them together. */
#define WORTH_OF_TABLE 0.25
#define WORTH_OF_ALL 0.4
/* Features that begin in one pixel of a plane, where any do. Many that each cover a part of a pixel hide it only for
 * maps whose pixels lie as those of the plane do: the plane is then twice as fine as the maps. A plane four times as
 * fine was 4.4 % of the pixels off for 500,000 roads. */
#define CROWD_MOST 2.5
enum { FINENESS_MOST = 2 };
/* The coarsest level: the table is that many pixels wide, or more. */
#define PIXELS_LEAST 4
/* Steps of a pixel that the coordinates of a level have at least. */
#define PIXEL_STEPS 1000

/* What the database says of the table; what is asked for in this order. */
static const char facts_sql[] =
    "SELECT c.oid::text, c.relkind::text, (c.relhassubclass OR c.relpersistence = 't')::text, c.relrowsecurity::text, "
    "current_setting('server_version_num'), " MC_LEVELS_COLUMNS(
        "c.oid") ", pg_relation_filenode(c.oid)::text, "
                 "pg_current_snapshot()::text, pg_postmaster_start_time()::text, "
                 "(to_regclass('mapcache_changes.log') IS NOT NULL)::text, " MC_LEVELS_TRIGGERS(
                     "c.oid") ", "
                              "(pg_relation_size(c.oid) / current_setting('block_size')::int8)::text, "
                              "pg_table_size(c.oid)::text, "
                              "postgis_typmod_type(a.atttypmod) FROM pg_class c JOIN pg_attribute a ON a.attrelid = "
                              "c.oid "
                              "WHERE c.oid = to_regclass(%s) AND a.attname = %s";
enum {
    FACT_OID,
    FACT_KIND,
    FACT_PARTED,
    FACT_GUARDED,
    FACT_VERSION,
    FACT_COLUMNS,
    FACT_FILENODE,
    FACT_SNAPSHOT,
    FACT_STARTED,
    FACT_LOG,
    FACT_TRIGGERS,
    FACT_PAGES,
    FACT_BYTES,
    FACT_TYPE,
    FACTS
};

static bool
is_true(const char *fact)
{
    return fact != NULL && strcmp(fact, "true") == 0;
}

/* Why the table cannot have overviews; NULL: it can. */
static const char *
table_refusal(const mc_overview_job *job, const char *const *facts)
{
    const mc_style *style = job->layer->style;
    int version = 0;
    if (*facts[FACT_KIND] != 'r' && *facts[FACT_KIND] != 'm')
        return "it is no table and no materialized view";
    if (is_true(facts[FACT_PARTED]))
        return "it is temporary, or has partitions or children";
    if (is_true(facts[FACT_GUARDED]))
        return "it has row level security, which overviews would not keep";
    if (!mc_parse_int(&version, facts[FACT_VERSION], 0, 999999) || version < 140000)
        return "overviews need PostgreSQL 14";
    if (job->column.geography)
        return "its column is a geography";
    if (job->column.srid == 0)
        return "its geometry has no SRID";
    if (style->digest == 0)
        return "its style is not known by a digest";
    for (int i = 0; i < style->attribute_count; i++)
        if (strcmp(style->attributes[i], job->column.name) == 0)
            return "its style takes the geometry for an attribute";
    if (!job->options->is_static && !is_true(facts[FACT_LOG]))
        return "nothing logs its changes: see mapcache invalidate --sql; if it never changes, say --static";
    if (!job->options->is_static && facts[FACT_TRIGGERS] == NULL)
        return "it has no triggers of the change log: see mapcache invalidate --sql; if it never changes, say --static";
    return NULL;
}

static mc_error *
refuse_table(const mc_overview_job *job, const char *reason)
{
    return mc_error_create(job->pool, MC_ERR_CONFIG, "table \"%s\" of layer \"%s\" cannot have overviews: %s",
                           job->config.table, job->layer->name, reason);
}

/* The grid of the tileset that is in the CRS of the table. */
static const mc_grid *
find_grid(const mc_tileset *tileset, int srid)
{
    for (int i = 0; i < tileset->link_count; i++)
        if (mc_crs_epsg(tileset->links[i]->grid->srs, NULL) == srid)
            return tileset->links[i]->grid;
    return NULL;
}

static mc_error *
find_bounds(mc_overview_job *job)
{
    const char **found, *name = mc_sql_name(job->column.name, job->pool);
    const char *sql =
        apr_pstrcat(job->pool, "SELECT ST_XMin(b)::text, ST_YMin(b)::text, ST_XMax(b)::text, ST_YMax(b)::text, ",
                    "n::text FROM (SELECT ST_Extent(", name, ") AS b, count(*) AS n FROM ",
                    mc_sql_table(job->config.table, job->pool), ") AS e", NULL);
    MC_TRY(mc_overview_ask(&found, 5, job, sql));
    if (found == NULL || found[0] == NULL || !mc_parse_double(&job->bounds.minx, found[0]) ||
        !mc_parse_double(&job->bounds.miny, found[1]) || !mc_parse_double(&job->bounds.maxx, found[2]) ||
        !mc_parse_double(&job->bounds.maxy, found[3]) || !mc_parse_double(&job->rows, found[4]))
        return refuse_table(job, "it has no geometry");
    return MC_OK;
}

static mc_error *
ask_facts(mc_overview_job *job)
{
    const char **facts;
    const char *table = mc_overview_quote(mc_sql_table(job->config.table, job->pool), job->pool);
    MC_TRY(mc_overview_ask(&facts, FACTS, job,
                           apr_psprintf(job->pool, facts_sql, table, mc_overview_quote(job->column.name, job->pool))));
    if (facts == NULL)
        return refuse_table(job, "there is no such table");
    const char *refusal = table_refusal(job, facts);
    if (refusal != NULL)
        return refuse_table(job, refusal);
    job->relation = facts[FACT_OID];
    job->columns = facts[FACT_COLUMNS];
    job->filenode = facts[FACT_FILENODE];
    job->applied = facts[FACT_SNAPSHOT];
    job->started = facts[FACT_STARTED];
    job->triggers = job->options->is_static ? NULL : facts[FACT_TRIGGERS];
    job->has_log = is_true(facts[FACT_LOG]);
    job->points = strncmp(facts[FACT_TYPE], "Point", 5) == 0 || strncmp(facts[FACT_TYPE], "MultiPoint", 10) == 0;
    if (!mc_parse_int64(&job->pages, facts[FACT_PAGES], 0, INT64_MAX) ||
        !mc_parse_double(&job->bytes, facts[FACT_BYTES]))
        return refuse_table(job, "its size is not known");
    return find_bounds(job);
}

/* ---- One level ---- */

/* Whoever may read the table may read the level. */
static mc_error *
grant_level(const mc_overview_job *job, const char *name)
{
    return mc_overview_run(
        job, apr_psprintf(job->pool,
                          "DO $body$ DECLARE role text; BEGIN FOR role IN SELECT DISTINCT CASE WHEN a.grantee = 0 THEN "
                          "'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END FROM pg_class c, "
                          "aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = %s AND "
                          "a.privilege_type = 'SELECT' LOOP EXECUTE 'GRANT SELECT ON %s TO ' || role; END LOOP; END "
                          "$body$",
                          job->relation, name));
}

/* A row in the table of levels. */
static mc_error *
register_level(const mc_overview_job *job, const mc_overview_level *level, const char *name)
{
    apr_pool_t *pool = job->pool;
    const char *none = "NULL";
    return mc_overview_run(
        job,
        apr_psprintf(
            pool,
            "INSERT INTO " MC_LEVELS_SCHEMA ".levels (name, source, relation, geometry, srid, style, format, "
            "resolution, until, metres_per_unit, columns, filenode, applied, started, reader, triggers, rows) VALUES "
            "(%s, %s, %s, %s, %d, %s::int8, %d, '%s', '%s', '%s', %s, %s, %s, %s, %s, %s, %" APR_INT64_T_FMT ")",
            mc_overview_quote(name, pool), mc_overview_quote(mc_sql_table(job->config.table, pool), pool),
            job->relation, mc_overview_quote(job->column.name, pool), job->column.srid,
            apr_psprintf(pool, "'%" APR_INT64_T_FMT "'", (apr_int64_t)job->layer->style->digest), MC_LEVELS_FORMAT,
            mc_double_text('g', 17, level->resolution, pool), mc_double_text('g', 17, level->until, pool),
            mc_double_text('g', 17, job->grid->metres_per_unit, pool), mc_overview_quote(job->columns, pool),
            job->filenode, mc_overview_quote(job->applied, pool), mc_overview_quote(job->started, pool),
            job->reader == NULL ? none : mc_overview_quote(job->reader, pool),
            job->triggers == NULL ? none : mc_overview_quote(job->triggers, pool), (apr_int64_t)level->kept));
}

/* The table of a level, without rows. What is packed is not compressed again: that would take longer than reading. */
static mc_error *
create_level(const mc_overview_job *job, mc_overview_level *level)
{
    const char **values;
    MC_TRY(mc_overview_ask(&values, 1, job, "SELECT 'level_' || nextval('" MC_LEVELS_SCHEMA ".numbers')"));
    level->name = values[0];
    const char *table = apr_pstrcat(job->pool, MC_LEVELS_SCHEMA ".", level->name, NULL);
    MC_TRY(mc_overview_run(job, apr_psprintf(job->pool,
                                             "CREATE TABLE %s (part integer NOT NULL, box geometry(Polygon,%d) NOT "
                                             "NULL, count integer NOT NULL, features bytea NOT NULL)",
                                             table, job->column.srid)));
    MC_TRY(mc_overview_run(
        job, apr_psprintf(job->pool, "ALTER TABLE %s ALTER COLUMN features SET STORAGE EXTERNAL", table)));
    return mc_overview_run(
        job,
        apr_psprintf(
            job->pool, "COMMENT ON TABLE %s IS %s", table,
            mc_overview_quote(
                apr_psprintf(job->pool,
                             "Overview of %s: what maps show at %g units for a pixel; SELECT * FROM " MC_LEVELS_SCHEMA
                             ".features('%s')",
                             job->config.table, level->resolution, level->name),
                job->pool)));
}

/* A level that was filled. */
static mc_error *
finish_level(mc_overview_job *job, const mc_overview_level *level)
{
    const char **values, *table = apr_pstrcat(job->pool, MC_LEVELS_SCHEMA ".", level->name, NULL);
    MC_TRY(mc_overview_run(job, apr_psprintf(job->pool, "CREATE INDEX ON %s USING gist (box)", table)));
    MC_TRY(mc_overview_run(job, apr_pstrcat(job->pool, "ANALYZE ", table, NULL)));
    MC_TRY(grant_level(job, table));
    MC_TRY(register_level(job, level, level->name));
    MC_TRY(
        mc_overview_ask(&values, 1, job, apr_psprintf(job->pool, "SELECT pg_total_relation_size('%s')::text", table)));
    job->levels++;
    const double bytes = values == NULL ? 0 : strtod(values[0], NULL);
    mc_overview_tell_level(job, level, (int64_t)bytes, "%" APR_INT64_T_FMT " features, %.1f MB",
                           (apr_int64_t)level->kept, bytes / 1e6);
    return MC_OK;
}

static mc_error *
drop_level(const mc_overview_job *job, const char *name)
{
    return mc_overview_run(job, apr_pstrcat(job->pool, "DROP TABLE " MC_LEVELS_SCHEMA ".", name, NULL));
}

/* ---- All levels ---- */

static double
pixels_of_table(const mc_overview_job *job, double resolution)
{
    return (job->bounds.maxx - job->bounds.minx) / resolution * ((job->bounds.maxy - job->bounds.miny) / resolution);
}

/* Counts at one resolution in how many pixels features begin. In coarser pixels at most four times as many begin. */
static mc_error *
find_crowd(mc_overview_job *job)
{
    const char **found, *name = mc_sql_name(job->column.name, job->pool);
    double pixels, resolution = job->grid->levels[0].resolution;
    for (int z = 0; z < job->grid->level_count &&
                    pixels_of_table(job, job->grid->levels[z].resolution) <= CROWD_PIXELS_FOR_ROW * job->rows;
         z++)
        resolution = job->grid->levels[z].resolution;
    const char *side = mc_double_text('g', 17, resolution, job->pool);
    MC_TRY(mc_overview_ask(&found, 1, job,
                           apr_psprintf(job->pool,
                                        "SELECT count(*)::text FROM (SELECT DISTINCT floor(ST_XMin(%s) / %s), "
                                        "floor(ST_YMin(%s) / %s) FROM %s) AS begun",
                                        name, side, name, side, mc_sql_table(job->config.table, job->pool))));
    if (found == NULL || !mc_parse_double(&pixels, found[0]) || pixels < 1)
        return refuse_table(job, "it has no geometry");
    job->crowd = job->rows / pixels / (resolution * resolution);
    return MC_OK;
}

/* 0: the features are too many for a plane. */
static int
find_fineness(const mc_overview_job *job, double resolution)
{
    for (int fineness = 1; fineness <= FINENESS_MOST; fineness *= 2)
        if (job->crowd * resolution * resolution / (fineness * fineness) <= CROWD_MOST)
            return fineness;
    return 0;
}

/* Whether maps of a resolution need a level. */
static bool
needs_level(const mc_overview_job *job, double resolution)
{
    const double scale = resolution * job->grid->metres_per_unit / MC_PIXEL_METRES;
    const double width = (job->bounds.maxx - job->bounds.minx) / resolution;
    const double height = (job->bounds.maxy - job->bounds.miny) / resolution;
    return (width >= PIXELS_LEAST || height >= PIXELS_LEAST) &&
           pixels_of_table(job, resolution) <= fmax(PIXELS_FOR_ROW * job->rows, job->bytes / BYTES_FOR_PIXEL) &&
           mc_vector_layer_shows(job->layer, scale) && mc_vector_layer_shows(job->layer, 2 * scale * (1 - 1e-6));
}

/* Why there cannot be a level; NULL: there can. */
static const char *
level_refusal(const mc_overview_job *job, const mc_overview_level *level)
{
    const double scale = level->resolution * job->grid->metres_per_unit / MC_PIXEL_METRES;
    const double around = 2.0 * mc_sieve_margin(job->layer->style, scale, level->fineness) + 4;
    const double width = (job->bounds.maxx - job->bounds.minx) / level->resolution * level->fineness;
    const double height = (job->bounds.maxy - job->bounds.miny) / level->resolution * level->fineness;
    const char *refusal = mc_sieve_refusal(job->layer->style, scale, 2 * scale, job->points);
    if (refusal != NULL)
        return refusal;
    if (level->fineness == 0)
        return "its features are too many for a pixel";
    return (width + around) * (height + around) > MC_SIEVE_PIXELS_MAX ||
                   fmax(width, height) + around > MC_SHAPE_REACH / MC_SUBPIXELS
               ? "it has too many pixels"
               : NULL;
}

/* Decimals whose steps are at most a thousandth of a pixel; a map's vertices then fall into the cells of its own
 * thinning as those of the table do. */
static int
find_digits(double resolution)
{
    return mc_twkb_digits(resolution / PIXEL_STEPS * 10);
}

/* The levels that the grid's resolutions need, the finest first. */
static mc_error *
find_needed_levels(mc_overview_level **levels, int *count, mc_overview_job *job)
{
    *count = 0;
    *levels = apr_pcalloc(job->pool, sizeof(**levels) * (size_t)(job->grid->level_count + 1));
    for (int z = job->grid->level_count - 1; z >= 0; z--) {
        mc_overview_level *level = &(*levels)[*count];
        level->resolution = job->grid->levels[z].resolution;
        level->until = 2 * level->resolution;
        if (!needs_level(job, level->resolution))
            continue;
        if (job->crowd == 0)
            MC_TRY(find_crowd(job));
        level->fineness = find_fineness(job, level->resolution);
        level->digits = find_digits(level->resolution);
        const char *refusal = level_refusal(job, level);
        if (refusal != NULL) {
            mc_overview_tell_level(job, level, 0, "no level: %s", refusal);
            continue;
        }
        MC_TRY(create_level(job, level));
        ++*count;
    }
    return MC_OK;
}

/* Whether the finer of two levels serves the maps of the coarser one: nothing is left out of either because of what
 * hides it, and the same rules draw. */
static bool
serves_coarser(const mc_overview_job *job, const mc_overview_level *finer, const mc_overview_level *coarser)
{
    const mc_style *style = job->layer->style;
    const double per_pixel = job->grid->metres_per_unit / MC_PIXEL_METRES;
    return !mc_sieve_hides(style, finer->resolution * per_pixel) &&
           !mc_sieve_hides(style, coarser->resolution * per_pixel) &&
           mc_sieve_refusal(style, finer->resolution * per_pixel, coarser->until * per_pixel, job->points) == NULL;
}

/* Which of the levels that were filled are worth their room: *all is the bytes of these. */
static void
choose_worthy_levels(bool *chosen, double *all, mc_overview_level *levels, int count, const mc_overview_job *job)
{
    mc_overview_level *finer = NULL;
    *all = 0;
    for (int i = 0; i < count; i++) {
        const bool both =
            finer != NULL && levels[i].resolution < finer->until * (1 + 1e-6) && serves_coarser(job, finer, &levels[i]);
        const double worth = both ? WORTH_OF_VERTICES : WORTH;
        chosen[i] =
            levels[i].name != NULL && (finer == NULL || (double)levels[i].bytes <= worth * (double)finer->bytes);
        if (both && !chosen[i])
            finer->until = levels[i].until;
        if (chosen[i])
            finer = &levels[i];
        *all += chosen[i] ? (double)finer->bytes : 0;
    }
}

static mc_error *
build_levels(mc_overview_job *job)
{
    mc_overview_level *levels;
    int count;
    double all;
    MC_TRY(find_needed_levels(&levels, &count, job));
    bool *chosen = apr_pcalloc(job->pool, sizeof(*chosen) * (size_t)(count + 1));
    const char **names = apr_pcalloc(job->pool, sizeof(*names) * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        names[i] = levels[i].name;
    if (count > 0)
        MC_TRY(mc_overview_sift(levels, count, WORTH_OF_TABLE * job->bytes, job));
    choose_worthy_levels(chosen, &all, levels, count, job);
    for (int i = 0; i < count; i++) {
        if (chosen[i] && all > WORTH_OF_ALL * job->bytes) { /* the finest ones go */
            all -= (double)levels[i].bytes;
            chosen[i] = false;
        }
        if (!chosen[i] && levels[i].name != NULL)
            mc_overview_tell_level(job, &levels[i], 0, "no level, which would not be worth its room");
        MC_TRY(chosen[i] ? finish_level(job, &levels[i]) : drop_level(job, names[i]));
    }
    return MC_OK;
}

/*
 * From now on the change log keeps what changes. Before the snapshot is taken, and committed: other readers would have
 * what changes during the build removed. Older levels keep their place in the log until the new ones are there.
 */
static mc_error *
join_readers(mc_overview_job *job)
{
    const char **found;
    if (job->options->is_static)
        return MC_OK;
    MC_TRY(mc_overview_ask(&found, 1, job, "SELECT to_regclass('mapcache_changes.readers')::text"));
    if (found == NULL || found[0] == NULL)
        return MC_OK; /* the table is refused later, with the reason */
    job->reader =
        apr_psprintf(job->pool, MC_OVERVIEW_READER "%s for %016" PRIx64, job->relation, job->layer->style->digest);
    return mc_overview_run(
        job, apr_psprintf(job->pool,
                          "INSERT INTO mapcache_changes.readers (name, applied) VALUES (%s, pg_current_snapshot()) ON "
                          "CONFLICT (name) DO UPDATE SET at = clock_timestamp()",
                          mc_overview_quote(job->reader, job->pool)));
}

/* The levels know all that the snapshot sees. */
static mc_error *
move_reader(const mc_overview_job *job)
{
    if (job->reader == NULL)
        return MC_OK;
    return mc_overview_run(job, apr_psprintf(job->pool,
                                             "UPDATE mapcache_changes.readers SET applied = %s, at = "
                                             "clock_timestamp() WHERE name = %s",
                                             mc_overview_quote(job->applied, job->pool),
                                             mc_overview_quote(job->reader, job->pool)));
}

mc_error *
mc_overview_build_table(mc_overview_job *job, const mc_tileset *tileset)
{
    MC_TRY(join_readers(job));
    MC_TRY(mc_overview_run(job, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
    MC_TRY(mc_overview_run(job, "SET LOCAL lock_timeout = '60s'"));
    MC_TRY(mc_overview_run(job, "SET LOCAL client_min_messages = warning"));
    MC_TRY(ask_facts(job));
    job->grid = find_grid(tileset, job->column.srid);
    if (job->grid == NULL)
        return refuse_table(
            job, apr_psprintf(job->pool, "its SRID is %d, and the tileset has no grid of that CRS", job->column.srid));
    MC_TRY(mc_overview_run(
        job, apr_psprintf(job->pool,
                          "DELETE FROM " MC_LEVELS_SCHEMA
                          ".levels WHERE relation = %s AND geometry = %s AND style = '%" APR_INT64_T_FMT "'::int8",
                          job->relation, mc_overview_quote(job->column.name, job->pool),
                          (apr_int64_t)job->layer->style->digest)));
    MC_TRY(move_reader(job));
    MC_TRY(build_levels(job));
    return mc_overview_run(job, "COMMIT");
}
