/* Placeholders in SVG files: param(name) default, as QGIS and GeoServer know them. */
#include <apr_strings.h>
#include <string.h>

#include "draw/symbol/picture.h"

static const char opening[] = "param(";

/* What may stand for a placeholder: nothing that could end an attribute or begin a reference. */
static bool
is_harmless(const char *value)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789#.,-+%() ";
    size_t size = strlen(value);
    return size > 0 && size <= 64 && strspn(value, allowed) == size;
}

/* QGIS says outline where GeoServer says stroke. */
static bool
is_same_parameter(const char *name, size_t size, const char *other)
{
    static const char *const twins[][2] = { { "outline", "stroke" },
                                            { "outline-width", "stroke-width" },
                                            { "outline-opacity", "stroke-opacity" } };
    if (strlen(other) == size && memcmp(name, other, size) == 0)
        return true;
    for (int i = 0; i < 3; i++)
        for (int side = 0; side < 2; side++)
            if (strlen(twins[i][side]) == size && memcmp(name, twins[i][side], size) == 0 &&
                strcmp(twins[i][1 - side], other) == 0)
                return true;
    return false;
}

static const char *
value_for(const char *name, size_t size, const char *const *names, const char *const *values, int count)
{
    for (int i = 0; i < count; i++)
        if (values[i] != NULL && is_harmless(values[i]) && is_same_parameter(name, size, names[i]))
            return values[i];
    return NULL;
}

/* Whether a placeholder stands for a number. */
static bool
is_share(const char *name, size_t size)
{
    const char *dash = memchr(name, '-', size);
    return dash != NULL && (strncmp(dash, "-width", 6) == 0 || strncmp(dash, "-opacity", 8) == 0);
}

/* Where the default behind a placeholder ends. */
static const char *
end_of_default(const char *at)
{
    const char *end = at + strspn(at, " ");
    end += strcspn(end, " \"';<>\t\r\n");
    return end;
}

const char *
mc_svg_fill_in(const char *svg, const char *const *names, const char *const *values, int count, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 16, sizeof(const char *));
    const char *rest = svg, *found;
    while ((found = strstr(rest, opening)) != NULL) {
        const char *name = found + sizeof(opening) - 1, *close = name + strcspn(name, ")\"'<>");
        if (*close != ')')
            break;
        size_t size = (size_t)(close - name);
        const char *value = value_for(name, size, names, values, count), *end = end_of_default(close + 1);
        const char *fallback = apr_pstrmemdup(pool, close + 1, (size_t)(end - close - 1));
        if (fallback[strspn(fallback, " ")] == '\0') /* QGIS has black and 1 where a file says nothing */
            fallback = is_share(name, size) ? "1" : "#000000";
        APR_ARRAY_PUSH(parts, const char *) = apr_pstrmemdup(pool, rest, (size_t)(found - rest));
        APR_ARRAY_PUSH(parts, const char *) = value != NULL ? value : fallback;
        rest = end;
    }
    APR_ARRAY_PUSH(parts, const char *) = rest;
    return apr_array_pstrcat(pool, parts, '\0');
}
