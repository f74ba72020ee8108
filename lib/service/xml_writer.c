/* An XML writer onto a buffer: capabilities, reports and KML are written with it, so that nothing goes out unescaped.
 */
#include "service/xml_writer.h"

#include <apr_strings.h>
#include <string.h>

#include "text/text.h"

#define DOCUMENT_MAX ((size_t)256 << 20)
#define DEPTH_MAX 32

struct mc_xml {
    apr_pool_t *pool;
    apr_pool_t *scratch; /* cleared after each value */
    mc_buf *buf;
    mc_error *error; /* the first one; handed out by mc_xml_finish */
    const char *open[DEPTH_MAX];
    int depth;
    bool in_tag; /* the start tag of open[depth - 1] still takes attributes */
};

static void
write_bytes(mc_xml *xml, const char *text, size_t size)
{
    if (xml->error == MC_OK)
        xml->error = mc_buf_append(xml->buf, text, size, xml->pool);
}

static void
write_text(mc_xml *xml, const char *text)
{
    write_bytes(xml, text, strlen(text));
}

/* Most values are names and numbers, with nothing to escape in them. */
static bool
is_plain_text(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c < ' ' || c > '~' || c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
            return false;
    }
    return true;
}

static void
write_escaped(mc_xml *xml, const char *text)
{
    size_t size = strlen(text);
    if (is_plain_text(text, size)) {
        write_bytes(xml, text, size);
        return;
    }
    write_text(xml, mc_xml_escape(text, xml->scratch));
    apr_pool_clear(xml->scratch);
}

static void
end_tag(mc_xml *xml)
{
    if (xml->in_tag)
        write_text(xml, ">");
    xml->in_tag = false;
}

mc_xml *
mc_xml_create(const char *prologue, apr_pool_t *pool)
{
    mc_xml *xml = apr_pcalloc(pool, sizeof(*xml));
    xml->pool = pool;
    apr_pool_create(&xml->scratch, pool);
    xml->buf = mc_buf_attach(mc_buf_create(4096, DOCUMENT_MAX), pool);
    if (prologue != NULL)
        write_text(xml, prologue);
    return xml;
}

void
mc_xml_open(mc_xml *xml, const char *name)
{
    MC_ASSERT(xml->depth < DEPTH_MAX);
    end_tag(xml);
    write_text(xml, "<");
    write_text(xml, name);
    xml->open[xml->depth++] = name;
    xml->in_tag = true;
}

void
mc_xml_close(mc_xml *xml)
{
    MC_ASSERT(xml->depth > 0);
    xml->depth--;
    if (xml->in_tag) {
        write_text(xml, "/>");
        xml->in_tag = false;
        return;
    }
    write_text(xml, "</");
    write_text(xml, xml->open[xml->depth]);
    write_text(xml, ">");
}

void
mc_xml_attr(mc_xml *xml, const char *name, const char *value)
{
    MC_ASSERT(xml->in_tag);
    if (value == NULL)
        return;
    write_text(xml, " ");
    write_text(xml, name);
    write_text(xml, "=\"");
    write_escaped(xml, value);
    write_text(xml, "\"");
}

void
mc_xml_attrf(mc_xml *xml, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *value = apr_pvsprintf(xml->pool, format, args);
    va_end(args);
    mc_xml_attr(xml, name, value);
}

void
mc_xml_text(mc_xml *xml, const char *text)
{
    end_tag(xml);
    write_escaped(xml, text);
}

void
mc_xml_element(mc_xml *xml, const char *name, const char *text)
{
    if (text == NULL)
        return;
    size_t name_size = strlen(name), text_size = strlen(text);
    if (!is_plain_text(text, text_size)) {
        mc_xml_open(xml, name);
        mc_xml_text(xml, text);
        mc_xml_close(xml);
        return;
    }
    end_tag(xml);
    if (xml->error == MC_OK)
        xml->error = mc_buf_reserve(xml->buf, 2 * name_size + text_size + sizeof("<></>"), xml->pool);
    if (xml->error != MC_OK)
        return;
    char *at = (char *)xml->buf->data + xml->buf->size;
    *at++ = '<';
    at = mempcpy(at, name, name_size);
    *at++ = '>';
    at = mempcpy(at, text, text_size);
    *at++ = '<';
    *at++ = '/';
    at = mempcpy(at, name, name_size);
    *at++ = '>';
    xml->buf->size = (size_t)(at - (char *)xml->buf->data);
}

void
mc_xml_element_int(mc_xml *xml, const char *name, int number)
{
    mc_whole_text digits;
    mc_xml_element(xml, name, mc_write_whole(&digits, number));
}

void
mc_xml_elementf(mc_xml *xml, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = apr_pvsprintf(xml->pool, format, args);
    va_end(args);
    mc_xml_element(xml, name, text);
}

mc_error *
mc_xml_finish(mc_buf **document, mc_xml *xml)
{
    MC_ASSERT(xml->depth == 0);
    if (xml->error != MC_OK)
        return xml->error;
    *document = xml->buf;
    return MC_OK;
}
