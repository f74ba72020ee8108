/* See info_join.h: which kind of document a media type is, and plain text. */
#include "service/info_join.h"

#include <string.h>
#include <strings.h>

/* Bytes of all answers together. */
#define JOINED_BYTES ((size_t)64 << 20)

typedef mc_error *info_joiner(mc_buf *out, mc_buf *const *parts, int count, apr_pool_t *pool);

/* One after the other, each on a line of its own. */
static mc_error *
join_text(mc_buf *out, mc_buf *const *parts, int count, apr_pool_t *pool)
{
    for (int i = 0; i < count; i++) {
        if (out->size > 0 && out->data[out->size - 1] != '\n')
            MC_TRY(mc_buf_append(out, "\n", 1, pool));
        MC_TRY(mc_buf_append(out, parts[i]->data, parts[i]->size, pool));
    }
    return MC_OK;
}

static bool
has_media_word(const char *mime, size_t size, const char *word)
{
    size_t length = strlen(word);
    for (size_t i = 0; i + length <= size; i++)
        if (strncasecmp(mime + i, word, length) == 0)
            return true;
    return false;
}

/* By the words of a media type, without its parameters. */
static info_joiner *
find_joiner(const char *mime)
{
    size_t size = strcspn(mime, ";");
    if (has_media_word(mime, size, "html"))
        return mc_info_join_html;
    if (has_media_word(mime, size, "json"))
        return mc_info_join_json;
    if (has_media_word(mime, size, "xml") || has_media_word(mime, size, "gml"))
        return mc_info_join_xml;
    return strncasecmp(mime, "text/", 5) == 0 ? join_text : NULL;
}

bool
mc_info_joins(const char *mime)
{
    return find_joiner(mime) != NULL;
}

mc_error *
mc_info_join(mc_buf **joined, mc_buf *const *parts, int count, const char *mime, apr_pool_t *pool)
{
    info_joiner *join = find_joiner(mime);
    *joined = mc_buf_attach(mc_buf_create(4096, JOINED_BYTES), pool);
    if (join == NULL)
        return mc_error_located(pool, MC_ERR_INVALID_FORMAT, "info_format",
                                "feature info of several layers is not to be had as %s", mime);
    return join(*joined, parts, count, pool);
}
