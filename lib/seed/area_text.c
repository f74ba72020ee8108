/* What the readers of areas as text share: words, numbers, vertices, errors with file and line. */
#include <apr_strings.h>
#include <stdarg.h>
#include <string.h>

#include "seed/area_private.h"
#include "text/text.h"

enum { NUMBER_MAX = 64 };

mc_error *
mc_areas_fail(const mc_areas_text *text, const char *format, ...)
{
    va_list args;
    int line = 1;
    for (const char *c = text->begin; c < text->at; c++)
        line += *c == '\n';
    va_start(args, format);
    const char *message = apr_pvsprintf(text->pool, format, args);
    va_end(args);
    return mc_error_create(text->pool, MC_ERR_CORRUPT, "%s:%d: %s", text->path, line, message);
}

void
mc_areas_skip(mc_areas_text *text)
{
    while (text->at < text->end && *text->at != '\0' && strchr(" \t\r\n", *text->at) != NULL)
        text->at++;
}

bool
mc_areas_take(mc_areas_text *text, char wanted)
{
    mc_areas_skip(text);
    if (text->at == text->end || *text->at != wanted)
        return false;
    text->at++;
    return true;
}

mc_error *
mc_areas_number(double *number, mc_areas_text *text)
{
    char word[NUMBER_MAX];
    size_t size = 0;
    mc_areas_skip(text);
    while (text->at < text->end && size < sizeof(word) - 1 && *text->at != '\0' &&
           strchr("+-.0123456789eE", *text->at) != NULL)
        word[size++] = *text->at++;
    word[size] = '\0';
    if (!mc_parse_double(number, word))
        return mc_areas_fail(text, "a number is expected");
    return MC_OK;
}

mc_error *
mc_areas_add(mc_areas_text *text, mc_region_kind kind, size_t first, size_t count)
{
    if (text->builder == NULL || count == 0)
        return MC_OK;
    mc_error *error = mc_region_add(text->builder, kind, text->points.xy + 2 * first, count, text->pool);
    if (error == MC_OK || error->kind != MC_ERR_CORRUPT)
        return error;
    return mc_areas_fail(text, "%s", mc_error_chain(error, text->pool));
}
