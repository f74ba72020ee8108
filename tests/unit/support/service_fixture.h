/* A configuration made by hand: tilesets on the builtin grids, dimensions, all services; and calls to the dispatcher.
 */
#ifndef MC_UNIT_SERVICE_FIXTURE_H
#define MC_UNIT_SERVICE_FIXTURE_H

#include <apr_hash.h>
#include <apr_strings.h>
#include <string.h>

#include "service/service_base.h"
#include "unit.h"

extern mc_config service_config;
extern mc_call service_call;
extern mc_request service_request;
extern apr_table_t *service_headers;

/* A dimension that knows red, blue and the hostile value "<b>&". */
extern const mc_dimension_ops color_ops;
extern const mc_source_ops source_ops;

mc_tileset *fixture_tileset(const char *name, const char *format, const char *grid_a, const char *grid_b);

/* Replaces all services by those of an XML text, in dispatch order. False if it is refused. */
bool fixture_services(const char *xml);

#define SERVICE(type, inside) "<service type=\"" type "\" enabled=\"true\">" inside "</service>"
#define ALL_BUT_WMS                                                                                                    \
    SERVICE("tms", "")                                                                                                 \
    SERVICE("wmts", "")                                                                                                \
    SERVICE("demo", "") SERVICE("gmaps", "") SERVICE("kml", "") SERVICE("ve", "") SERVICE("mapguide", "")
#define ALL_SERVICES "<mapcache>" SERVICE("wms", "") ALL_BUT_WMS "</mapcache>"

void fixture_setup(void);
mc_error *dispatch_request(const char *path, const char *query);

/* The error's kind and its status as the service reports it; -1 for success. The body's text in *body. */
int status_of(const char *path, const char *query, mc_document *body);
const char *buf_text(const mc_buf *buf);
const char *document_text(void);

typedef struct refused_row {
    const char *path;
    const char *query;
    int status;
    const char *mime;
    const char *holds; /* in the body */
} refused_row;

void check_refused(const refused_row *rows, size_t count);

#endif
