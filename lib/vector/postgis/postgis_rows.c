/* See postgis_reading.h: the rows of an answer, as features. */
#include "vector/postgis/postgis_reading.h"

#include <apr_strings.h>

#include "vector/crs/projection.h"
#include "vector/geometry/warp.h"

/* Bytes of a geometry after which what was needed for it is given back at once. */
#define LARGE_SHAPE (1 << 16)

/* Plain and packed geometry tell themselves apart by the first byte: packed begins with a type, plain of the order that
 * is asked for where packing is not possible with a zero. */
static mc_error *
read_geometry_field(mc_postgis_reading *r, const mc_postgres_field *field, apr_pool_t *scratch)
{
    const mc_pixel_grid *pixel_grid = &r->request->query->pixel_grid;
    size_t size = (size_t)field->size;
    if (r->request->transfer == MC_TRANSFER_TWKB && size > 0 && field->data[0] != 0)
        return mc_twkb_read(&r->base.geometry, field->data, size, pixel_grid, scratch);
    if (r->request->transfer != MC_TRANSFER_HEX)
        return mc_wkb_read(&r->base.geometry, field->data, size, pixel_grid, scratch);
    uint8_t *bytes = apr_palloc(scratch, size / 2 + 1);
    return mc_wkb_read(&r->base.geometry, bytes, mc_postgis_unhex(bytes, field->data, field->size), pixel_grid,
                       scratch);
}

/* A row of another CRS than the layer's is not where it says; of a column's declared SRID, <srid> says where. */
static mc_error *
check_srid(const mc_postgis_reading *r, apr_pool_t *scratch)
{
    int own = r->base.geometry.srid, map = r->request->map_srid != 0 ? r->request->map_srid : r->column->srid;
    bool transformed = map != r->column->srid;
    if (own == 0 || r->column->srid == 0 || own == r->column->srid || own == r->column->declared ||
        (transformed && own == map))
        return MC_OK;
    return mc_error_create(scratch, MC_ERR_CORRUPT, "its SRID is %d and that of its layer %d", own, r->column->srid);
}

static const char *
value_of(mc_postgis_reading *r, int index, const mc_postgres_field *field)
{
    const bool *integers = r->request->integers;
    if (field->size < 0)
        return NULL;
    if (integers == NULL || !integers[index])
        return field->data;
    r->wholes[index] = mc_postgis_whole(field);
    return r->request->query->wholes ? mc_value_is_whole : mc_write_whole(&r->texts[index], r->wholes[index]);
}

/* Bytes of a packed geometry that it would have plain: two numbers of eight bytes a vertex and a few for its head. */
static int64_t
spared_bytes(const mc_postgis_reading *r, const mc_postgres_field *field)
{
    int64_t plain = 20 + 16 * r->base.geometry.vertex_count;
    return r->request->transfer == MC_TRANSFER_TWKB && plain > field->size ? plain - field->size : 0;
}

/* The box of the map finds no nulls: the statement has made one of it. */
static mc_error *
geometry_size_error(const mc_postgis_reading *r, apr_pool_t *scratch)
{
    return mc_error_create(scratch, MC_ERR_LIMIT, "its geometry has more than %d MB%s", MC_POSTGIS_GEOMETRY_MAX >> 20,
                           r->column->unsettled ? ", or another SRID than its layer" : "");
}

static mc_error *
visit_row(mc_postgis_reading *r, const mc_postgres_field *fields, apr_pool_t *scratch)
{
    bool none = fields[0].size < 0;
    if (none && !r->column->large)
        return MC_OK;
    mc_error *error = none ? geometry_size_error(r, scratch) : read_geometry_field(r, &fields[0], scratch);
    if (error == MC_OK)
        error = check_srid(r, scratch);
    if (error == MC_OK)
        r->worth += spared_bytes(r, &fields[0]);
    if (!mc_reading_draws(&r->base, error, scratch))
        return MC_OK;
    r->visited++;
    for (int i = 0; i < r->request->query->attribute_count; i++)
        r->values[i] = value_of(r, i, &fields[r->first + i]);
    return mc_reading_visit(&r->base, r->first == 2 ? mc_postgis_whole(&fields[1]) : 0, r->values);
}

static int
count_answer_columns(const mc_postgis_reading *r)
{
    return r->first + r->request->query->attribute_count;
}

void
mc_postgis_reserve_row(mc_postgis_reading *r, bool gathered, apr_pool_t *pool)
{
    const size_t count = (size_t)r->request->query->attribute_count + 1;
    r->values = apr_pcalloc(pool, sizeof(*r->values) * count);
    r->texts = apr_palloc(pool, sizeof(*r->texts) * count);
    r->base.wholes = r->wholes = apr_palloc(pool, sizeof(*r->wholes) * count);
    r->fields = gathered ? apr_palloc(pool, sizeof(*r->fields) * (size_t)count_answer_columns(r)) : NULL;
}

/* Many features in one value. */
static mc_error *
hand_over_all(mc_postgis_reading *r, const mc_postgres_field *value, apr_pool_t *scratch)
{
    const char *at = value->data, *end = at + value->size;
    for (bool meets; at < end; r->rows++) {
        if (!mc_postgis_next_of(r->fields, &meets, &at, end, r->first == 2, r->request))
            return mc_error_create(scratch, MC_ERR_UPSTREAM,
                                   "layer \"%s\": the database sent something that is no feature", r->layer->data.name);
        r->beside += !meets;
        if (meets)
            MC_TRY(visit_row(r, r->fields, scratch));
        if (r->rows % 64 == 0 || r->fields[0].size > LARGE_SHAPE)
            apr_pool_clear(scratch);
    }
    return MC_OK;
}

mc_error *
mc_postgis_read_rows(mc_postgis_reading *r, mc_postgres_result *result, int64_t most, apr_pool_t *pool)
{
    const mc_postgres_row *row;
    apr_pool_t *scratch;
    mc_error *error = MC_OK;
    apr_pool_create(&scratch, pool);
    for (int64_t i = 0; i < most && error == MC_OK; i++, r->rows += r->fields == NULL) {
        error = mc_postgres_next(&row, result);
        if (error != MC_OK || row == NULL)
            break;
        if (row->columns != (r->fields != NULL ? 1 : count_answer_columns(r)))
            error = mc_error_create(pool, MC_ERR_UPSTREAM, "layer \"%s\": the database answered with %d columns",
                                    r->layer->data.name, row->columns);
        else if (r->fields != NULL)
            error = mc_error_copy(hand_over_all(r, &row->fields[0], scratch), pool);
        else
            error = mc_error_copy(visit_row(r, row->fields, scratch), pool);
        if (r->rows % 64 == 0 || row->fields[0].size > LARGE_SHAPE)
            apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    return error;
}

int
mc_postgis_own_query(mc_feature_query *own, int srid, const mc_feature_query *query, const char *layer,
                     apr_pool_t *pool)
{
    int map_srid = mc_crs_epsg(query->srs, NULL);
    *own = *query;
    if (srid == 0 || map_srid == srid)
        return srid;
    mc_error *error = mc_feature_query_project(own, query, apr_psprintf(pool, "EPSG:%d", srid), layer, pool);
    if (error == MC_OK || map_srid == 0)
        return srid;
    mc_error_ignore(error);
    *own = *query;
    return map_srid;
}
