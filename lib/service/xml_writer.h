/*
 * Writes XML documents: everything that is passed as a value is escaped, elements are closed in their order.
 */
#ifndef MC_SERVICE_XML_WRITER_H
#define MC_SERVICE_XML_WRITER_H

#include "mapcache/buf.h"

typedef struct mc_xml mc_xml;

/* A writer whose document lives in `pool`. `prologue` (may be NULL) is written as it stands: the text must be our own.
 */
mc_xml *mc_xml_create(const char *prologue, apr_pool_t *pool);

/* Names are string literals of ours: they are not copied and not escaped. */
void mc_xml_open(mc_xml *xml, const char *name);
void mc_xml_close(mc_xml *xml);

/* An attribute of the element that has just been opened. A NULL value writes nothing. */
void mc_xml_attr(mc_xml *xml, const char *name, const char *value);
void mc_xml_attrf(mc_xml *xml, const char *name, const char *format, ...) MC_PRINTF(3, 4);

void mc_xml_text(mc_xml *xml, const char *text);

/* A whole element with text only. A NULL text writes nothing. */
void mc_xml_element(mc_xml *xml, const char *name, const char *text);
void mc_xml_elementf(mc_xml *xml, const char *name, const char *format, ...) MC_PRINTF(3, 4);
void mc_xml_element_int(mc_xml *xml, const char *name, int number);

/* The document, attached to the writer's pool, once all elements are closed. MC_ERR_LIMIT when it grew too large. */
mc_error *mc_xml_finish(mc_buf **document, mc_xml *xml) MC_CHECKED;

#endif
