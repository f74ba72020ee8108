/* GetFeatureInfo of vector sources: the attributes of what lies under a pixel, from the data itself. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "feature/hit.h"
#include "mapcache/trace.h"
#include "source/vector.h"

enum { MOST_FEATURES = 50, MOST_BYTES = 1 << 20, REACH = 3 /* pixels around the point */ };

/* How features are written. One row for each media type. */
typedef struct writer {
    const char *mime;
    const char *begin, *end;
    void (*feature)(apr_array_header_t *out, const char *layer, const mc_feature *feature, const char *const *names,
                    int count, int index, apr_pool_t *pool);
} writer;

static void
put(apr_array_header_t *out, const char *text)
{
    APR_ARRAY_PUSH(out, const char *) = text;
}

static void
write_plain(apr_array_header_t *out, const char *layer, const mc_feature *feature, const char *const *names, int count,
            int index, apr_pool_t *pool)
{
    (void)index;
    put(out, apr_psprintf(pool, "%s %" APR_INT64_T_FMT "\n", layer, (apr_int64_t)feature->id));
    for (int i = 0; i < count; i++)
        if (feature->values[i] != NULL)
            put(out,
                apr_pstrcat(pool, "  ", names[i], " = ", mc_message_text(feature->values[i], 4096, pool), "\n", NULL));
}

static void
write_json(apr_array_header_t *out, const char *layer, const mc_feature *feature, const char *const *names, int count,
           int index, apr_pool_t *pool)
{
    put(out, apr_psprintf(
                 pool, "%s{\"type\":\"Feature\",\"id\":\"%s.%" APR_INT64_T_FMT "\",\"geometry\":null,\"properties\":{",
                 index > 0 ? "," : "", mc_json_escape(layer, pool), (apr_int64_t)feature->id));
    for (int i = 0; i < count; i++) {
        const char *value = feature->values[i] == NULL
                                ? "null"
                                : apr_pstrcat(pool, "\"", mc_json_escape(feature->values[i], pool), "\"", NULL);
        put(out, apr_pstrcat(pool, i > 0 ? ",\"" : "\"", mc_json_escape(names[i], pool), "\":", value, NULL));
    }
    put(out, "}}");
}

static void
write_html(apr_array_header_t *out, const char *layer, const mc_feature *feature, const char *const *names, int count,
           int index, apr_pool_t *pool)
{
    (void)index;
    put(out, apr_psprintf(pool, "<table><caption>%s %" APR_INT64_T_FMT "</caption>", mc_xml_escape(layer, pool),
                          (apr_int64_t)feature->id));
    for (int i = 0; i < count; i++)
        put(out,
            apr_pstrcat(pool, "<tr><th>", mc_xml_escape(names[i], pool), "</th><td>",
                        feature->values[i] == NULL ? "" : mc_xml_escape(feature->values[i], pool), "</td></tr>", NULL));
    put(out, "</table>");
}

static void
write_gml(apr_array_header_t *out, const char *layer, const mc_feature *feature, const char *const *names, int count,
          int index, apr_pool_t *pool)
{
    (void)index;
    put(out, apr_psprintf(pool, "<gml:featureMember><feature layer=\"%s\" fid=\"%" APR_INT64_T_FMT "\">",
                          mc_xml_escape(layer, pool), (apr_int64_t)feature->id));
    for (int i = 0; i < count; i++)
        if (feature->values[i] != NULL)
            put(out, apr_pstrcat(pool, "<attribute name=\"", mc_xml_escape(names[i], pool), "\">",
                                 mc_xml_escape(feature->values[i], pool), "</attribute>", NULL));
    put(out, "</feature></gml:featureMember>");
}

static const writer writers[] = {
    { "text/plain", "", "", write_plain },
    { "application/json", "{\"type\":\"FeatureCollection\",\"features\":[", "]}\n", write_json },
    { "text/html", "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>Features</title></head><body>",
      "</body></html>\n", write_html },
    { "application/vnd.ogc.gml",
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<gml:FeatureCollection xmlns:gml=\"http://www.opengis.net/gml\">",
      "</gml:FeatureCollection>\n", write_gml },
};

enum { WRITERS = sizeof(writers) / sizeof(writers[0]) };

const apr_array_header_t *
mc_vector_info_formats(apr_pool_t *pool)
{
    apr_array_header_t *formats = apr_array_make(pool, WRITERS, sizeof(const char *));
    for (int i = 0; i < WRITERS; i++)
        APR_ARRAY_PUSH(formats, const char *) = writers[i].mime;
    return formats;
}

typedef struct finding {
    const writer *how;
    const mc_vector_layer *layer;
    const mc_feature_query *query;
    mc_shape_point point;
    apr_array_header_t *out; /* of const char * */
    int count;
    apr_pool_t *pool;
} finding;

static mc_error *
take(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    (void)ctx;
    finding *f = baton;
    if (f->count == MOST_FEATURES || !mc_geometry_hit(feature->geometry, f->point, REACH * MC_SUBPIXELS))
        return MC_OK;
    f->how->feature(f->out, f->layer->name, feature, f->query->attributes, f->query->attribute_count, f->count,
                    f->pool);
    f->count++;
    return MC_OK;
}

static mc_error *
find_in_layer(finding *f, const mc_vector_layer *layer, const mc_info_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_feature_query query = { 0 };
    apr_array_header_t *fields = NULL;
    int64_t skipped = 0;
    const char **names;
    MC_TRY(mc_vector_fields(&fields, &names, layer, ctx, pool));
    query.attributes = names;
    query.attribute_count = fields->nelts;
    mc_vector_query(&query, &wanted->map, 0);
    const mc_extent *box = &wanted->map.box;
    double x = (box->maxx - box->minx) / wanted->map.width, y = (box->maxy - box->miny) / wanted->map.height;
    query.box = (mc_extent){ box->minx + (wanted->x + 0.5 - REACH) * x, box->maxy - (wanted->y + 0.5 + REACH) * y,
                             box->minx + (wanted->x + 0.5 + REACH) * x, box->maxy - (wanted->y + 0.5 - REACH) * y };
    query.lattice.thinning = 0;
    f->layer = layer;
    f->query = &query;
    return layer->data->ops->read(layer->data, &query, take, f, &skipped, ctx, pool);
}

mc_error *
mc_vector_info(mc_buf **text, mc_source *source, const mc_info_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_vector_info");
    mc_vector_source *vector = (mc_vector_source *)source;
    finding f = { .how = &writers[0], .out = apr_array_make(pool, 64, sizeof(const char *)), .pool = pool };
    f.point =
        (mc_shape_point){ wanted->x * MC_SUBPIXELS + MC_SUBPIXELS / 2, wanted->y * MC_SUBPIXELS + MC_SUBPIXELS / 2 };
    for (int i = 0; i < WRITERS; i++)
        if (strcmp(writers[i].mime, wanted->format) == 0)
            f.how = &writers[i];
    for (int i = vector->layer_count - 1; i >= 0; i--) /* what lies on top first */
        MC_TRY(find_in_layer(&f, vector->layers[i], wanted, ctx, pool));
    mc_buf *out = mc_buf_attach(mc_buf_create(1024, MOST_BYTES), pool);
    MC_TRY(mc_buf_append(out, f.how->begin, strlen(f.how->begin), pool));
    for (int i = 0; i < f.out->nelts; i++) {
        const char *part = APR_ARRAY_IDX(f.out, i, const char *);
        MC_TRY(mc_buf_append(out, part, strlen(part), pool));
    }
    MC_TRY(mc_buf_append(out, f.how->end, strlen(f.how->end), pool));
    *text = out;
    return MC_OK;
}
