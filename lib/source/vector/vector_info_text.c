/* Features as text, GeoJSON (RFC 7946), HTML and GML 2.1.2 (OGC 02-069). */
#include <apr_strings.h>
#include <string.h>

#include "source/vector/vector_info.h"
#include "text/json_writer.h"
#include "text/text.h"
#include "text/utf8.h"

enum { MOST_VALUE = 4096 /* bytes of a value in plain text */ };

static const char *
join_info_parts(const apr_array_header_t *parts, apr_pool_t *pool)
{
    return apr_array_pstrcat(pool, parts, 0);
}

#define PUT(parts, ...) (APR_ARRAY_PUSH(parts, const char *) = apr_pstrcat(pool, __VA_ARGS__, NULL))

static const char *
feature_id_text(const mc_info_layer *layer, const mc_feature *feature, const char *before, apr_pool_t *pool)
{
    return layer->has_ids ? apr_psprintf(pool, "%s%" APR_INT64_T_FMT, before, (apr_int64_t)feature->id) : "";
}

static const char *
write_plain(const mc_info_layer *layer, const mc_feature *feature, apr_pool_t *pool)
{
    apr_array_header_t *out = apr_array_make(pool, layer->field_count + 1, sizeof(const char *));
    PUT(out, layer->name, feature_id_text(layer, feature, " ", pool), "\n");
    for (int i = 0; i < layer->field_count; i++)
        if (feature->values[i] != NULL)
            PUT(out, "  ", layer->fields[i].name, " = ", mc_message_text(feature->values[i], MOST_VALUE, pool), "\n");
    return join_info_parts(out, pool);
}

/* Numbers as JSON has them, and no others: no "+1", no "01", no "nan". */
static bool
is_json_number(const char *text)
{
    const char *at = text + (*text == '-');
    size_t whole = strspn(at, "0123456789");
    if (whole == 0 || (whole > 1 && *at == '0'))
        return false;
    at += whole;
    if (*at == '.') {
        size_t decimals = strspn(at + 1, "0123456789");
        if (decimals == 0)
            return false;
        at += 1 + decimals;
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        size_t digits = strspn(at, "0123456789");
        if (digits == 0)
            return false;
        at += digits;
    }
    return *at == '\0';
}

static void
write_info_value(mc_json_writer *json, const mc_field *field, const char *value)
{
    bool boolean = value != NULL && field->type == MC_FIELD_BOOLEAN;
    bool number = value != NULL && (field->type == MC_FIELD_INTEGER || field->type == MC_FIELD_NUMBER);
    if ((boolean && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)) || (number && is_json_number(value)))
        mc_json_raw(json, field->name, value);
    else
        mc_json_string(json, field->name, value);
}

static const char *
write_info_feature_json(const mc_info_layer *layer, const mc_feature *feature, apr_pool_t *pool)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "type", "Feature");
    if (layer->has_ids)
        mc_json_string(json, "id", apr_pstrcat(pool, layer->name, feature_id_text(layer, feature, ".", pool), NULL));
    mc_json_raw(json, "geometry", mc_info_geojson(layer, feature, pool));
    mc_json_string(json, "layer", layer->name);
    mc_json_open_object(json, "properties");
    for (int i = 0; i < layer->field_count; i++)
        write_info_value(json, &layer->fields[i], feature->values[i]);
    mc_json_close(json);
    mc_json_close(json);
    return mc_json_finish_text(json);
}

static const char *
write_html(const mc_info_layer *layer, const mc_feature *feature, apr_pool_t *pool)
{
    apr_array_header_t *out = apr_array_make(pool, layer->field_count + 2, sizeof(const char *));
    PUT(out, "<table><caption>", mc_xml_escape(layer->name, pool), feature_id_text(layer, feature, " ", pool),
        "</caption>");
    for (int i = 0; i < layer->field_count; i++)
        PUT(out, "<tr><th>", mc_xml_escape(layer->fields[i].name, pool), "</th><td>",
            feature->values[i] == NULL ? "" : mc_xml_escape(feature->values[i], pool), "</td></tr>");
    PUT(out, "</table>\n");
    return join_info_parts(out, pool);
}

/* Whether a character may begin a name (XML 1.0, 2.3, production 4; without what is rare or used by namespaces). */
static bool
begins_names(uint32_t c)
{
    static const uint32_t ranges[][2] = { { 'A', 'Z' },       { '_', '_' },      { 'a', 'z' },     { 0xC0, 0xD6 },
                                          { 0xD8, 0xF6 },     { 0xF8, 0x2FF },   { 0x370, 0x37D }, { 0x37F, 0x1FFF },
                                          { 0x3001, 0xD7FF }, { 0xF900, 0xFDCF } };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

/* A name as an element may bear it: what it may not have is "_". */
static const char *
element_name(const char *text, apr_pool_t *pool)
{
    char *name = apr_palloc(pool, strlen(text) + 3), *to = name;
    *to++ = '_';
    for (const char *at = text; *at != '\0';) {
        uint32_t letter;
        size_t size = mc_utf8_decode(&letter, at);
        bool fits =
            size > 0 && (begins_names(letter) || (letter < 0x80 && strchr("0123456789.-", (int)letter) != NULL));
        size = size == 0 ? 1 : size;
        memcpy(to, fits ? at : "_", fits ? size : 1);
        to += fits ? size : 1;
        at += size;
    }
    *to = '\0';
    return name[1] == '\0' || strchr("0123456789.-", name[1]) != NULL ? name : name + 1;
}

static const char *
write_gml(const mc_info_layer *layer, const mc_feature *feature, apr_pool_t *pool)
{
    apr_array_header_t *out = apr_array_make(pool, layer->field_count + 2, sizeof(const char *));
    const char *name = element_name(layer->name, pool);
    const char *id = layer->has_ids
                         ? apr_pstrcat(pool, " fid=\"", name, feature_id_text(layer, feature, ".", pool), "\"", NULL)
                         : "";
    PUT(out, "<gml:featureMember><mc:", name, id, ">");
    for (int i = 0; i < layer->field_count; i++) {
        const char *field = element_name(layer->fields[i].name, pool);
        if (feature->values[i] != NULL)
            PUT(out, "<mc:", field, ">", mc_xml_escape(feature->values[i], pool), "</mc:", field, ">");
    }
    PUT(out, "</mc:", name, "></gml:featureMember>\n");
    return join_info_parts(out, pool);
}

const mc_info_writer mc_info_writers[] = {
    { "text/plain", "", "", "", false, write_plain },
    { "application/json", "{\"type\":\"FeatureCollection\",\"features\":[", ",", "]}\n", true,
      write_info_feature_json },
    { "text/html", "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>Features</title></head><body>\n", "",
      "</body></html>\n", false, write_html },
    { "application/vnd.ogc.gml",
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<mc:FeatureCollection xmlns:mc=\"urn:x-mapcache:features\" "
      "xmlns:gml=\"http://www.opengis.net/gml\"><gml:boundedBy><gml:null>unknown</gml:null></gml:boundedBy>\n",
      "", "</mc:FeatureCollection>\n", false, write_gml },
    { "text/plain; charset=utf-8", "", "", "", false, write_plain },
    { NULL, NULL, NULL, NULL, false, NULL },
};
