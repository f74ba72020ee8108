/* Cubes in PostgreSQL. */
#include <apr_strings.h>
#include <string.h>

#include "base/bytes.h"
#include "cube/chunk.h"
#include "cube/store.h"
#include "db/postgres/postgres.h"
#include "mapcache/trace.h"

/* SQLSTATE (PostgreSQL manual, appendix A). */
#define UNDEFINED_TABLE "42P01"

enum { PARAMS = 10, ROW_HEAD = 2 + 3 * 8 + 4 + 4 /* bytes of a row of COPY beside cover and data */ };

/* Bytes that are gathered before they go out. */
#define PARCEL ((size_t)1 << 20)

typedef struct cube_postgresql_config {
    mc_cube_config common; /* first */
    const char *connection, *table;
} cube_postgresql_config;

typedef struct postgresql_cube {
    mc_cube cube; /* first */
    const char *connection;
} postgresql_cube;

static const mc_key postgresql_keys[] = {
    MC_CUBE_KEYS(cube_postgresql_config),
    MC_KEY_TEXT("connection", offsetof(cube_postgresql_config, connection),
                "Connection string or URI of libpq, e.g. `host=db.example dbname=cubes user=maps`.",
                .flags = MC_KEY_OURS | MC_KEY_REQUIRED),
    MC_KEY_TEXT("table", offsetof(cube_postgresql_config, table),
                "Table of the chunks, with its schema if wanted; TABLE_dates and TABLE_info stand beside it. All are "
                "made by the "
                "first ingestion. Default: cube_NAME.",
                .flags = MC_KEY_OURS),
    MC_KEY_END,
};

/* NAME or SCHEMA.NAME, so short that the names made of it are still told apart: PostgreSQL cuts names off. */
static bool
is_table(const char *text)
{
    enum { LONGEST = 63, SUFFIX = 6 /* _dates */ };
    const char *dot = strchr(text, '.'), *name = dot == NULL ? text : dot + 1;
    bool schema = dot == NULL || (dot != text && dot - text <= LONGEST);
    return schema && *name != '\0' && strchr(name, '.') == NULL && strlen(name) <= LONGEST - SUFFIX;
}

static mc_cube *
cube_postgresql_from_config(const mc_node *node, mc_build *build)
{
    cube_postgresql_config config = { 0 };
    if (!mc_config_read(&config, node, postgresql_keys, build->diagnostics))
        return NULL;
    postgresql_cube *cube = apr_pcalloc(build->pool, sizeof(*cube));
    if (!mc_cube_set_up(&cube->cube, &config.common, node, build))
        return NULL;
    cube->cube.ops = &mc_cube_postgresql;
    cube->connection = config.connection;
    mc_postgres_configure(config.connection, node, build);
    const char *table = config.table != NULL ? config.table : apr_pstrcat(build->pool, "cube_", cube->cube.name, NULL);
    if (!is_table(table)) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "<table> is NAME or SCHEMA.NAME with a name of at most 57 bytes: %s cannot be one%s",
                    mc_config_quote(table, build->pool), config.table == NULL ? " (made of the cube's name)" : "");
        return NULL;
    }
    cube->cube.sql = mc_cube_statements(&cube->cube, table, MC_CUBE_IN_POSTGRESQL, build->pool);
    return &cube->cube;
}

/* ---- statements */

typedef struct params {
    mc_postgres_param list[PARAMS];
    uint8_t wire[PARAMS][8];
    int count;
} params;

static void
put_param_big_endian(uint8_t *out, int64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)((uint64_t)value >> (8 * (bytes - 1 - i)));
}

static void
add_cube_number_param(params *p, int64_t value, int bytes)
{
    put_param_big_endian(p->wire[p->count], value, bytes);
    p->list[p->count] = (mc_postgres_param){ .value = p->wire[p->count],
                                             .size = bytes,
                                             .binary = true,
                                             .type = bytes == 8 ? MC_POSTGRES_INT8 : MC_POSTGRES_INT4 };
    p->count++;
}

static void
add_cube_text_param(params *p, const char *text)
{
    p->list[p->count++] = (mc_postgres_param){ .value = text, .type = MC_POSTGRES_TEXT };
}

static int64_t
binary_field_number(const mc_postgres_field *field)
{
    uint64_t value = mc_big_number(field->data, field->size);
    return field->size == 4 ? (int32_t)value : (int64_t)value;
}

typedef mc_error *take_row(void *baton, const mc_postgres_field *fields);

/* Runs a statement and gives its rows to `take` (NULL: they are left). session NULL: over any connection. *state: what
 * the server has to say of an error. */
static mc_error *
run_cube_query(char state[6], const mc_cube *cube, mc_postgres_session *session, const char *sql, const params *p,
               take_row *take, void *baton, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_postgres_query query = { .connection = ((const postgresql_cube *)cube)->connection,
                                .sql = sql,
                                .params = p == NULL ? NULL : p->list,
                                .param_count = p == NULL ? 0 : p->count,
                                .binary = true,
                                .session = session };
    mc_postgres_result *result;
    const mc_postgres_row *row;
    mc_error *error =
        mc_postgres_start(&result, ctx->process == NULL ? NULL : ctx->process->postgres, &query, ctx, pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL)
        if (take != NULL && (error = take(baton, row->fields)) != MC_OK)
            break;
    apr_cpystrn(state, mc_postgres_sqlstate(result), 6);
    mc_postgres_end(result);
    return error;
}

/* The database's failure in the words of the cube. */
static mc_error *
cube_postgres_error(mc_error *error, const mc_cube *cube, apr_pool_t *pool)
{
    if (error == MC_OK || error->kind == MC_ERR_CONFIG || error->kind == MC_ERR_CORRUPT || error->kind == MC_ERR_LIMIT)
        return error;
    mc_error_kind kind =
        error->kind == MC_ERR_UNAVAILABLE || error->kind == MC_ERR_TIMEOUT ? MC_ERR_UNAVAILABLE : MC_ERR_IO;
    return mc_error_wrap(pool, error, kind, "cube \"%s\": its database cannot do what is asked", cube->name);
}

typedef struct postgresql_text {
    const char *text;
    apr_pool_t *pool;
} postgresql_text;

static mc_error *
visit_signature_field(void *baton, const mc_postgres_field *fields)
{
    postgresql_text *t = baton;
    t->text = apr_pstrmemdup(t->pool, fields[0].data, fields[0].size < 0 ? 0 : (apr_size_t)fields[0].size);
    return MC_OK;
}

/* What the store says it is must be what the cube is */
static mc_error *
check_postgres_signature(const mc_cube *cube, mc_postgres_session *session, mc_ctx *ctx, apr_pool_t *pool)
{
    char state[6];
    postgresql_text found = { "nothing", pool };
    mc_error *error =
        run_cube_query(state, cube, session, cube->sql->signature, NULL, visit_signature_field, &found, ctx, pool);
    return error != MC_OK ? cube_postgres_error(error, cube, pool) : mc_cube_check_signature(cube, found.text, pool);
}

/* ---- reading */

typedef struct postgresql_reading {
    mc_cube_take_piece *piece; /* one of them */
    mc_cube_take_date *date;
    void *baton;
    bool other_shape;
    apr_pool_t *pool;
} postgresql_reading;

static size_t
binary_field_size(const mc_postgres_field *field)
{
    return field->size < 0 ? 0 : (size_t)field->size;
}

static mc_error *
give_piece(const postgresql_reading *r, const mc_postgres_field *f)
{
    mc_cube_piece piece = { .time_us = binary_field_number(&f[1]),
                            .slot = (int)binary_field_number(&f[2]),
                            .stored = f[3].size == 4 };
    if (piece.stored) {
        piece.y = (int)binary_field_number(&f[3]);
        piece.x = (int)binary_field_number(&f[4]);
        piece.cover = f[5].data;
        piece.cover_size = binary_field_size(&f[5]);
        piece.data = f[6].data;
        piece.data_size = binary_field_size(&f[6]);
    }
    return r->piece(r->baton, &piece);
}

static mc_error *
visit_cube_fields(void *baton, const mc_postgres_field *f)
{
    postgresql_reading *r = baton;
    r->other_shape = f[0].size != 1 || f[0].data[0] == 0;
    if (r->other_shape)
        return mc_error_create(r->pool, MC_ERR_CONFIG, "the store has another shape");
    if (r->piece != NULL)
        return give_piece(r, f);
    mc_cube_date date = { binary_field_number(&f[1]), (int)binary_field_number(&f[2]), (int)binary_field_number(&f[3]),
                          (int)binary_field_number(&f[4]) };
    return r->date(r->baton, &date);
}

static void
dates_params(params *p, const mc_cube *cube, const mc_cube_query *query, apr_pool_t *pool)
{
    p->count = 0;
    add_cube_text_param(p, mc_cube_signature(cube, pool));
    add_cube_number_param(p, query->span.start_us, 8);
    add_cube_number_param(p, query->span.end_us, 8);
    add_cube_number_param(p, query->most, 4);
}

static mc_error *
query_cube_tables(postgresql_reading *r, const char *sql, const params *p, const mc_cube *cube,
                  mc_postgres_session *session, mc_ctx *ctx)
{
    char state[6];
    mc_error *error = run_cube_query(state, cube, session, sql, p, visit_cube_fields, r, ctx, r->pool);
    if (error != MC_OK && r->other_shape) {
        MC_TRY(check_postgres_signature(cube, session, ctx, r->pool));
        return mc_cube_reshaped_error(cube, r->pool);
    }
    /* A table that nobody has made yet holds nothing. */
    return strcmp(state, UNDEFINED_TABLE) == 0 ? MC_OK : cube_postgres_error(error, cube, r->pool);
}

static mc_error *
postgresql_read(const mc_cube *cube, const mc_cube_query *query, mc_cube_take_piece *take, void *baton, mc_ctx *ctx,
                apr_pool_t *pool)
{
    MC_SPAN(ctx, "mc_cube_postgresql_read");
    postgresql_reading r = { .piece = take, .baton = baton, .pool = pool };
    mc_cube_window chunks = mc_cube_window_chunks(mc_cube_level(cube, query->level), &query->window);
    params p;
    dates_params(&p, cube, query, pool);
    add_cube_number_param(&p, chunks.y0, 4);
    add_cube_number_param(&p, chunks.y1, 4);
    add_cube_number_param(&p, chunks.x0, 4);
    add_cube_number_param(&p, chunks.x1, 4);
    add_cube_number_param(&p, query->window.y0, 4);
    add_cube_number_param(&p, query->window.y1, 4);
    return query_cube_tables(&r, cube->sql->read[query->level], &p, cube, NULL, ctx);
}

static mc_error *
postgresql_dates(const mc_cube *cube, const mc_cube_query *query, mc_cube_take_date *take, void *baton, mc_ctx *ctx,
                 apr_pool_t *pool)
{
    MC_SPAN(ctx, "mc_cube_postgresql_dates");
    postgresql_reading r = { .date = take, .baton = baton, .pool = pool };
    params p;
    dates_params(&p, cube, query, pool);
    return query_cube_tables(&r, cube->sql->dates, &p, cube, NULL, ctx);
}

/* ---- writing */

typedef struct postgresql_writer {
    mc_cube_writer writer; /* first */
    mc_postgres_session *session;
    apr_pool_t *scratch; /* of one statement */
    bool copying;
    bool taken_out; /* dead rows are left behind */
    uint8_t *parcel;
    size_t filled;
} postgresql_writer;

static mc_error *
write_cube_statement(postgresql_writer *w, const char *sql, const params *p, take_row *take, void *baton)
{
    char state[6];
    mc_error *error = run_cube_query(state, w->writer.cube, w->session, sql, p, take, baton, w->writer.ctx, w->scratch);
    return mc_error_copy(cube_postgres_error(error, w->writer.cube, w->scratch), w->writer.pool);
}

static mc_error *
send_copy_bytes(postgresql_writer *w)
{
    mc_error *error = mc_postgres_copy_bytes(w->session, w->parcel, w->filled);
    w->filled = 0;
    return cube_postgres_error(error, w->writer.cube, w->writer.pool);
}

/* Ends a COPY that is under way: other statements can follow. */
static mc_error *
end_copy(postgresql_writer *w)
{
    if (!w->copying)
        return MC_OK;
    w->copying = false;
    memcpy(w->parcel + w->filled, "\377\377", 2);
    w->filled += 2;
    MC_TRY(send_copy_bytes(w));
    return cube_postgres_error(mc_postgres_copy_end(w->session), w->writer.cube, w->writer.pool);
}

/* PostgreSQL manual, COPY, Binary Format. */
static mc_error *
begin_copy(postgresql_writer *w)
{
    static const char head[19] = "PGCOPY\n\377\r\n";
    if (w->copying)
        return MC_OK;
    MC_TRY(cube_postgres_error(mc_postgres_copy_begin(w->session, w->writer.cube->sql->copy), w->writer.cube,
                               w->writer.pool));
    w->copying = true;
    memcpy(w->parcel, head, sizeof(head));
    w->filled = sizeof(head);
    return MC_OK;
}

static void
append_copy_field(postgresql_writer *w, const void *bytes, size_t size, bool null)
{
    put_param_big_endian(w->parcel + w->filled, null ? -1 : (int64_t)size, 4);
    w->filled += 4;
    if (size > 0)
        memcpy(w->parcel + w->filled, bytes, size);
    w->filled += size;
}

static mc_error *
postgresql_put(mc_cube_writer *base, const mc_cube_chunk *chunk)
{
    postgresql_writer *w = (postgresql_writer *)base;
    const int keys[3] = { chunk->t, chunk->y, chunk->x };
    size_t size = ROW_HEAD + chunk->cover_size + chunk->data_size;
    MC_TRY(begin_copy(w));
    if (w->filled + size > PARCEL)
        MC_TRY(send_copy_bytes(w));
    put_param_big_endian(w->parcel + w->filled, 5, 2);
    w->filled += 2;
    for (int i = 0; i < 3; i++) {
        uint8_t number[4];
        put_param_big_endian(number, keys[i], 4);
        append_copy_field(w, number, 4, false);
    }
    append_copy_field(w, chunk->cover, chunk->cover_size, chunk->cover_size == 0);
    append_copy_field(w, chunk->data, chunk->data_size, false);
    return MC_OK;
}

typedef struct postgresql_removal {
    mc_cube_take_chunk *take;
    void *baton;
    int t, y;
} postgresql_removal;

static mc_error *
visit_chunk_fields(void *baton, const mc_postgres_field *f)
{
    const postgresql_removal *out = baton;
    mc_cube_chunk chunk = { .t = out->t,
                            .y = out->y,
                            .x = (int)binary_field_number(&f[0]),
                            .cover = f[1].data,
                            .cover_size = binary_field_size(&f[1]),
                            .data = f[2].data,
                            .data_size = binary_field_size(&f[2]) };
    return out->take(out->baton, &chunk);
}

static mc_error *
postgresql_take_out(mc_cube_writer *base, int t, int y, int x0, int x1, bool keep, mc_cube_take_chunk *take,
                    void *baton)
{
    postgresql_writer *w = (postgresql_writer *)base;
    postgresql_removal out = { take, baton, t, y };
    params p = { .count = 0 };
    MC_TRY(end_copy(w));
    apr_pool_clear(w->scratch);
    add_cube_number_param(&p, t, 4);
    add_cube_number_param(&p, y, 4);
    add_cube_number_param(&p, x0, 4);
    add_cube_number_param(&p, x1, 4);
    w->taken_out = w->taken_out || !keep;
    return write_cube_statement(w, keep ? base->cube->sql->look : base->cube->sql->take_out, &p, visit_chunk_fields,
                                &out);
}

/* A statement without an answer. */
static mc_error *
write_cube_change(mc_cube_writer *base, const char *sql, const params *p)
{
    postgresql_writer *w = (postgresql_writer *)base;
    MC_TRY(end_copy(w));
    apr_pool_clear(w->scratch);
    return write_cube_statement(w, sql, p, NULL, NULL);
}

static mc_error *
postgresql_clear(mc_cube_writer *base, int y)
{
    params p = { .count = 0 };
    add_cube_number_param(&p, y, 4);
    ((postgresql_writer *)base)->taken_out = true;
    return write_cube_change(base, base->cube->sql->clear, &p);
}

static mc_error *
postgresql_sign(mc_cube_writer *base, const char *signature)
{
    params p = { .count = 0 };
    add_cube_text_param(&p, signature);
    return write_cube_change(base, base->cube->sql->resign, &p);
}

static mc_error *
postgresql_put_date(mc_cube_writer *base, const mc_cube_date *date)
{
    params p = { .count = 0 };
    add_cube_number_param(&p, date->time_us, 8);
    add_cube_number_param(&p, date->t, 4);
    add_cube_number_param(&p, date->slot, 4);
    return write_cube_change(base, base->cube->sql->put_date, &p);
}

static mc_error *
postgresql_writer_dates(mc_cube_writer *base, mc_cube_take_date *take, void *baton)
{
    postgresql_writer *w = (postgresql_writer *)base;
    const mc_cube_query all = { .span = { INT64_MIN, INT64_MAX }, .most = INT32_MAX };
    postgresql_reading r = { .date = take, .baton = baton, .pool = base->pool };
    params p;
    dates_params(&p, base->cube, &all, base->pool);
    return query_cube_tables(&r, base->cube->sql->dates, &p, base->cube, w->session, base->ctx);
}

static mc_error *
postgresql_begin(mc_cube_writer *base)
{
    return write_cube_statement((postgresql_writer *)base, "BEGIN", NULL, NULL, NULL);
}

static mc_error *
postgresql_commit(mc_cube_writer *base)
{
    postgresql_writer *w = (postgresql_writer *)base;
    MC_TRY(end_copy(w));
    return write_cube_statement(w, "COMMIT", NULL, NULL, NULL);
}

static mc_error *
postgresql_tidy(mc_cube_writer *base)
{
    postgresql_writer *w = (postgresql_writer *)base;
    return w->taken_out ? write_cube_statement(w, base->cube->sql->tidy, NULL, NULL, NULL) : MC_OK;
}

static mc_error *
visit_cube_number_field(void *baton, const mc_postgres_field *fields)
{
    *(int64_t *)baton = binary_field_number(&fields[0]);
    return MC_OK;
}

static mc_error *
postgresql_size(int64_t *bytes, mc_cube_writer *base)
{
    return write_cube_statement((postgresql_writer *)base, base->cube->sql->size, NULL, visit_cube_number_field, bytes);
}

static mc_error *
postgresql_write(mc_cube_writer **writer, const mc_cube *cube, mc_ctx *ctx, apr_pool_t *pool)
{
    postgresql_writer *w = apr_pcalloc(pool, sizeof(*w));
    params p = { .count = 0 };
    w->writer = (mc_cube_writer){ &mc_cube_postgresql, cube, ctx, pool };
    w->parcel = apr_palloc(pool, PARCEL + mc_chunk_bytes_max + ROW_HEAD +
                                     mc_cover_size(cube->shape.chunk_dates,
                                                   (size_t)cube->shape.chunk_width * (size_t)cube->shape.chunk_height));
    apr_pool_create(&w->scratch, pool);
    mc_postgres *postgres = ctx->process == NULL ? NULL : ctx->process->postgres;
    MC_TRY(cube_postgres_error(
        mc_postgres_session_open(&w->session, postgres, ((const postgresql_cube *)cube)->connection, ctx, pool), cube,
        pool));
    MC_TRY(write_cube_statement(w, cube->sql->lock, NULL, NULL, NULL));
    MC_TRY(write_cube_statement(w, cube->sql->create, NULL, NULL, NULL));
    add_cube_text_param(&p, mc_cube_signature(cube, pool));
    MC_TRY(write_cube_statement(w, cube->sql->sign, &p, NULL, NULL));
    *writer = &w->writer;
    return check_postgres_signature(cube, w->session, ctx, pool);
}

const mc_cube_ops mc_cube_postgresql = {
    .size = sizeof(postgresql_cube),
    MC_CUBE_OPS(postgresql),
};

const mc_cube_kind mc_cube_kind_postgresql = { MC_KIND("postgresql", postgresql_keys, cube_postgresql_from_config,
                                                       "Images of one area at many dates, as chunks in a PostgreSQL "
                                                       "table.") };
