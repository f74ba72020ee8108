/* See projection.h. Contexts of PROJ wait in a list for whoever draws next: the one that was used last is taken first.
 */
#include "vector/crs/projection.h"

#include <apr_strings.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/module.h"
#include "grid/earth.h"
#include "vector/crs/projection_engine.h"

#define DEGREE (3.14159265358979323846 / 180.0)
#define NORTHMOST 89.9999 /* degrees: what lies beyond is as far up as anybody looks */

enum { CONTEXTS_MAX = 64 };

typedef enum method { BY_PROJ, TO_MERCATOR, FROM_MERCATOR } method;

struct mc_projection {
    method how;
    mc_proj_context *context;
    const mc_proj_pair *pair;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the three below */
static const mc_projection_engine *engine;
static mc_proj_context *waiting[CONTEXTS_MAX];
static int waiting_count;

/* --- by formula ------------------------------------------------------------------------------------------------- */

typedef enum known_crs { OTHER_CRS, DEGREES, MERCATOR } known_crs;

/* The two that most files are in, as ESRI writes them into a .prj, which has no code: root, and what must follow. */
static const struct {
    int epsg;
    const char *parts[6];
} esri[] = {
    { 4326, { "GEOGCS[\"GCS_WGS_1984\",DATUM[\"D_WGS_1984\",", "PRIMEM[\"Greenwich\",0", "UNIT[\"Degree\",0.01745" } },
    { 3857,
      { "PROJCS[\"WGS_1984_Web_Mercator_Auxiliary_Sphere\",", "\"False_Easting\",0.0]", "\"False_Northing\",0.0]",
        "\"Central_Meridian\",0.0]", "\"Standard_Parallel_1\",0.0]", "UNIT[\"Meter\",1.0]" } },
};

/* The code of a CRS given by its name or as WKT, where that can be told without PROJ, which is 40 libraries and a
 * database; 0: not so. The code of a WKT is the last thing in it (OGC 01-009, 7.2). */
static int
find_epsg_code(const char *name)
{
    static const char authority[] = "AUTHORITY[\"EPSG\",\"";
    int epsg = mc_crs_epsg(name, NULL);
    size_t length = strlen(name), size = sizeof(authority) - 1;
    if (epsg != 0 || length < size || (strncmp(name, "PROJCS[", 7) != 0 && strncmp(name, "GEOGCS[", 7) != 0))
        return epsg;
    for (size_t i = 0; i < sizeof(esri) / sizeof(esri[0]); i++) {
        const char *at = strncmp(name, esri[i].parts[0], strlen(esri[i].parts[0])) == 0 ? name : NULL;
        for (int part = 1; part < 6 && at != NULL && esri[i].parts[part] != NULL; part++)
            at = strstr(at, esri[i].parts[part]);
        if (at != NULL)
            return esri[i].epsg;
    }
    const char *last = name + length - size;
    while (last > name && strncmp(last, authority, size) != 0)
        last--;
    char *end;
    long code = strtol(last + size, &end, 10);
    return last > name && strcmp(end, "\"]]") == 0 && code > 0 && code <= 999999 ? (int)code : 0;
}

static known_crs
classify_crs(const char *name)
{
    switch (find_epsg_code(name)) {
    case 4326:
        return DEGREES;
    case 3857:
    case 3785:
    case 900913:
    case 102100:
    case 102113:
        return MERCATOR;
    default:
        return OTHER_CRS;
    }
}

static void
to_mercator(double *xy, size_t count)
{
    for (size_t i = 0; i < count; i++, xy += 2) {
        double latitude = xy[1] > NORTHMOST ? NORTHMOST : xy[1] < -NORTHMOST ? -NORTHMOST : xy[1];
        xy[0] *= MC_EARTH_RADIUS * DEGREE;
        xy[1] = MC_EARTH_RADIUS * atanh(sin(latitude * DEGREE));
    }
}

static void
from_mercator(double *xy, size_t count)
{
    for (size_t i = 0; i < count; i++, xy += 2) {
        xy[0] /= MC_EARTH_RADIUS * DEGREE;
        xy[1] = atan(sinh(xy[1] / MC_EARTH_RADIUS)) / DEGREE;
    }
}

/* Both formulas grow with each of the two coordinates alone. */
static void
by_formula(mc_extent *box, bool forward)
{
    double corners[4] = { box->minx, box->miny, box->maxx, box->maxy };
    if (forward)
        to_mercator(corners, 2);
    else
        from_mercator(corners, 2);
    *box = (mc_extent){ corners[0], corners[1], corners[2], corners[3] };
}

/* --- contexts --------------------------------------------------------------------------------------------------- */

static mc_error *
acquire_proj_context(mc_proj_context **context, apr_pool_t *pool)
{
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "proj", "mc_projection_engine_proj", pool));
    pthread_mutex_lock(&lock);
    if (engine == NULL) /* written once: whoever uses it has been here before */
        engine = symbol;
    *context = waiting_count > 0 ? waiting[--waiting_count] : NULL;
    pthread_mutex_unlock(&lock);
    if (*context == NULL)
        *context = engine->open();
    return *context != NULL ? MC_OK : mc_error_create(pool, MC_ERR_LIMIT, "PROJ has no memory");
}

static void
release_proj_context(mc_proj_context *context)
{
    pthread_mutex_lock(&lock);
    bool kept = waiting_count < CONTEXTS_MAX;
    if (kept)
        waiting[waiting_count++] = context;
    pthread_mutex_unlock(&lock);
    if (!kept)
        engine->close(context);
}

static apr_status_t
close_projection(void *data)
{
    release_proj_context(((mc_projection *)data)->context);
    return APR_SUCCESS;
}

/* --- what others see -------------------------------------------------------------------------------------------- */

int
mc_projection_same(const char *a, const char *b)
{
    int left = find_epsg_code(a), right = find_epsg_code(b);
    if (strcasecmp(a, b) == 0 || (left != 0 && left == right))
        return 1;
    if (classify_crs(a) != OTHER_CRS && classify_crs(b) != OTHER_CRS)
        return classify_crs(a) == classify_crs(b);
    return -1;
}

double
mc_projection_turn(const char *srs)
{
    const double degree = MC_EARTH_RADIUS * DEGREE;
    int epsg = find_epsg_code(srs);
    bool cylindrical = classify_crs(srs) == MERCATOR || epsg == 3395 || epsg == 4087 || epsg == 32662;
    if (cylindrical)
        return 360 * degree;
    return epsg != 0 && fabs(mc_crs_metres_per_unit(epsg) - degree) < 1 ? 360 : 0;
}

bool
mc_projection_is_formula(const char *from, const char *to)
{
    return classify_crs(from) != OTHER_CRS && classify_crs(to) != OTHER_CRS;
}

/* As PROJ reads it: the codes of its own database, in whatever form they were written. */
static const char *
for_proj(const char *name, apr_pool_t *pool)
{
    int epsg = find_epsg_code(name);
    if (classify_crs(name) == MERCATOR)
        return "EPSG:3857";
    return epsg == 0 ? name : apr_psprintf(pool, "EPSG:%d", epsg);
}

mc_error *
mc_projection_open(mc_projection **projection, const char *from, const char *to, apr_pool_t *pool)
{
    mc_proj_context *context;
    *projection = NULL;
    if (mc_projection_same(from, to) == 1)
        return MC_OK;
    mc_projection *made = apr_pcalloc(pool, sizeof(*made));
    if (classify_crs(from) != OTHER_CRS && classify_crs(to) != OTHER_CRS) {
        made->how = classify_crs(to) == MERCATOR ? TO_MERCATOR : FROM_MERCATOR;
        *projection = made;
        return MC_OK;
    }
    MC_TRY(acquire_proj_context(&context, pool));
    made->context = context;
    mc_error *error = engine->pair(&made->pair, context, for_proj(from, pool), for_proj(to, pool), pool);
    if (error != MC_OK || made->pair == NULL) {
        release_proj_context(context);
        return error;
    }
    apr_pool_cleanup_register(pool, made, close_projection, apr_pool_cleanup_null);
    *projection = made;
    return MC_OK;
}

const char *
mc_projection_formula(const char *srs, apr_pool_t *pool)
{
    mc_proj_context *context;
    if (acquire_proj_context(&context, pool) != MC_OK)
        return NULL;
    const char *text = engine->formula(context, for_proj(srs, pool), pool);
    release_proj_context(context);
    return text;
}

void
mc_projection_points(const mc_projection *projection, double *xy, size_t count)
{
    switch (projection->how) {
    case TO_MERCATOR:
        to_mercator(xy, count);
        break;
    case FROM_MERCATOR:
        from_mercator(xy, count);
        break;
    case BY_PROJ:
        engine->points(projection->pair, xy, count);
        break;
    }
}

double
mc_projection_ratio(const mc_projection *projection)
{
    return projection->how == BY_PROJ ? engine->ratio(projection->pair) : 0;
}

bool
mc_projection_box(mc_extent *box, const mc_projection *projection, bool inverse)
{
    if (projection->how != BY_PROJ) {
        by_formula(box, (projection->how == TO_MERCATOR) != inverse);
        return isfinite(box->minx) && isfinite(box->miny) && isfinite(box->maxx) && isfinite(box->maxy);
    }
    if (!engine->box(projection->pair, box, inverse))
        return false;
    if (box->minx > box->maxx) {
        box->minx = -180;
        box->maxx = 180;
    }
    return true;
}
