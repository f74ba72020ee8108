/* Templates of addresses of tiles: compiled once to a list of parts, filled in for each tile. */
#include "source/tiles/tile_url.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "text/text.h"

enum { QUADKEY_LEVELS = 31 };

typedef enum url_token {
    URL_TEXT,
    URL_LEVEL,
    URL_COLUMN,
    URL_ROW,
    URL_ROW_FROM_SOUTH,
    URL_QUADKEY,
    URL_SUBDOMAIN,
    URL_MATRIX,
    URL_DIMENSION
} url_token;

typedef struct url_part {
    url_token token;
    const char *text; /* of URL_TEXT; the name of URL_DIMENSION */
} url_part;

struct mc_tile_url {
    const mc_tile_url_rules *rules;
    apr_array_header_t *parts; /* of url_part */
    bool has_query;
};

static const struct {
    const char *name;
    url_token token;
} url_tokens[] = {
    { "z", URL_LEVEL },           { "x", URL_COLUMN },       { "y", URL_ROW },
    { "-y", URL_ROW_FROM_SOUTH }, { "q", URL_QUADKEY },      { "s", URL_SUBDOMAIN },
    { "TileMatrix", URL_MATRIX }, { "TileCol", URL_COLUMN }, { "TileRow", URL_ROW },
};

/* The part for what stands in braces. False: there is no such token. */
static bool
find_url_token(url_part *part, const char *name, const mc_tile_url_rules *rules)
{
    for (size_t i = 0; i < sizeof(url_tokens) / sizeof(url_tokens[0]); i++)
        if (strcasecmp(name, url_tokens[i].name) == 0) {
            *part = (url_part){ url_tokens[i].token, NULL };
            return true;
        }
    bool named = strncmp(name, "dim:", 4) == 0 && name[4] != '\0';
    if (!named && (!rules->dimension_names || *name == '\0'))
        return false;
    *part = (url_part){ URL_DIMENSION, named ? name + 4 : name };
    return true;
}

static bool
has_url_token(const mc_tile_url *url, url_token token)
{
    for (int i = 0; i < url->parts->nelts; i++)
        if (APR_ARRAY_IDX(url->parts, i, url_part).token == token)
            return true;
    return false;
}

/* What is wrong with the template as a whole; NULL: nothing. */
static const char *
find_url_fault(const mc_tile_url *url)
{
    bool level = has_url_token(url, URL_LEVEL) || has_url_token(url, URL_MATRIX);
    bool row = has_url_token(url, URL_ROW) || has_url_token(url, URL_ROW_FROM_SOUTH);
    if (!has_url_token(url, URL_QUADKEY) && !(level && row && has_url_token(url, URL_COLUMN)))
        return "does not tell tiles apart: it needs {z}, {x} and {y} (or {-y}), or {TileMatrix}, {TileCol} and "
               "{TileRow}, or {q}";
    if (has_url_token(url, URL_SUBDOMAIN) != (url->rules->subdomains != NULL))
        return "and <subdomains> belong together: {s} stands for one of the <subdomains>";
    return NULL;
}

/* Whether a part lies in the host, which no client may choose. */
static bool
lies_in_host(const char *text, const char *part)
{
    const char *host = strstr(text, "://") + 3;
    return part < host + strcspn(host, "/?#");
}

static bool
add_url_parts(mc_tile_url *url, const char *text, const mc_node *at, mc_build *build)
{
    for (const char *rest = text; *rest != '\0';) {
        size_t length = strcspn(rest, "{");
        if (length > 0)
            APR_ARRAY_PUSH(url->parts, url_part) = (url_part){ URL_TEXT, apr_pstrmemdup(build->pool, rest, length) };
        rest += length;
        if (*rest == '\0')
            break;
        const char *end = strchr(rest, '}');
        const char *name = end == NULL ? "" : apr_pstrmemdup(build->pool, rest + 1, (size_t)(end - rest) - 1);
        url_part part;
        if (end == NULL || !find_url_token(&part, name, url->rules)) {
            mc_complain(build->diagnostics, MC_REFUSED, at,
                        "{%s} cannot stand in the address of a tile: there are {z}, {x}, {y}, {-y}, {q}, {s}, "
                        "{TileMatrix}, {TileCol}, {TileRow} and {dim:NAME}",
                        name);
            return false;
        }
        if (part.token == URL_DIMENSION && lies_in_host(text, rest)) {
            mc_complain(build->diagnostics, MC_REFUSED, at, "the host cannot depend on what a client says");
            return false;
        }
        APR_ARRAY_PUSH(url->parts, url_part) = part;
        rest = end + 1;
    }
    return true;
}

mc_tile_url *
mc_tile_url_compile(const char *text, const mc_tile_url_rules *rules, const mc_node *at, mc_build *build)
{
    if (strncasecmp(text, "http://", 7) != 0 && strncasecmp(text, "https://", 8) != 0) {
        mc_complain(build->diagnostics, MC_REFUSED, at,
                    "the address of a tile begins with http:// or https://, for example "
                    "https://tile.example.org/{z}/{x}/{y}.png");
        return NULL;
    }
    mc_tile_url *url = apr_pcalloc(build->pool, sizeof(*url));
    url->rules = rules;
    url->parts = apr_array_make(build->pool, 12, sizeof(url_part));
    url->has_query = strchr(text, '?') != NULL;
    if (!add_url_parts(url, text, at, build))
        return NULL;
    const char *fault = find_url_fault(url);
    if (fault == NULL)
        return url;
    mc_complain(build->diagnostics, MC_REFUSED, at, "the address %s", fault);
    return NULL;
}

/* A digit for each level: the quarter of the square of the level above (Bing Maps Tile System). */
static const char *
quadkey_text(const mc_tile_place *place, apr_pool_t *pool)
{
    int levels = place->z < 0 ? 0 : place->z > QUADKEY_LEVELS ? QUADKEY_LEVELS : place->z;
    char *key = apr_pcalloc(pool, QUADKEY_LEVELS + 1);
    for (int i = 0; i < levels; i++) {
        int bit = levels - 1 - i;
        key[i] = (char)('0' + (place->column >> bit & 1) + 2 * (place->row >> bit & 1));
    }
    return key;
}

/* There is at least one name: <subdomains> without names is refused. */
static const char *
choose_subdomain(const mc_tile_url *url, const mc_tile_place *place)
{
    unsigned count = 1;
    while (url->rules->subdomains[count] != NULL)
        count++;
    return url->rules->subdomains[((unsigned)place->column + (unsigned)place->row) % count];
}

static mc_error *
dimension_text(const char **text, const char *name, const mc_tile_place *place, apr_pool_t *pool)
{
    for (int i = 0; i < place->dimension_count; i++) {
        const char *value = place->dimensions[i].value;
        if (strcasecmp(place->dimensions[i].name, name) != 0)
            continue;
        if (value == NULL)
            return mc_error_create(pool, MC_ERR_INVALID_DIMENSION, "dimension \"%s\" has no value", name);
        *text = mc_url_encode(value, NULL, true, false, pool);
        return MC_OK;
    }
    return mc_error_create(pool, MC_ERR_CONFIG,
                           "the address of a source's tiles has {%s}, but the tileset has no such dimension", name);
}

static mc_error *
url_part_text(const char **text, const url_part *part, const mc_tile_url *url, const mc_tile_place *place,
              apr_pool_t *pool)
{
    switch (part->token) {
    case URL_LEVEL:
        *text = apr_itoa(pool, place->z);
        return MC_OK;
    case URL_COLUMN:
        *text = apr_itoa(pool, place->column);
        return MC_OK;
    case URL_ROW:
        *text = apr_itoa(pool, place->row);
        return MC_OK;
    case URL_ROW_FROM_SOUTH:
        *text = apr_itoa(pool, place->row_from_south);
        return MC_OK;
    case URL_QUADKEY:
        *text = quadkey_text(place, pool);
        return MC_OK;
    case URL_SUBDOMAIN:
        *text = choose_subdomain(url, place);
        return MC_OK;
    case URL_MATRIX:
        *text = mc_url_encode(place->matrix, NULL, true, false, pool);
        return MC_OK;
    case URL_DIMENSION:
        return dimension_text(text, part->text, place, pool);
    case URL_TEXT:
    default:
        *text = part->text;
        return MC_OK;
    }
}

static void
append_dimension_params(apr_array_header_t *texts, const mc_tile_url *url, const mc_tile_place *place, apr_pool_t *pool)
{
    const char *separator = url->has_query ? "&" : "?";
    for (int i = 0; i < place->dimension_count; i++) {
        if (place->dimensions[i].value == NULL)
            continue;
        APR_ARRAY_PUSH(texts, const char *) =
            apr_pstrcat(pool, separator, place->dimensions[i].name, "=",
                        mc_url_encode(place->dimensions[i].value, NULL, true, false, pool), NULL);
        separator = "&";
    }
}

static int
escaped_digit(char c)
{
    const char digits[] = "0123456789abcdef";
    const char *found = c == '\0' ? NULL : strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
    return found == NULL ? -1 : (int)(found - digits);
}

/* The text with its percent signs undone, in place. */
static void
decode_percent(char *text)
{
    char *to = text;
    for (const char *c = text; *c != '\0'; to++) {
        int high = *c == '%' ? escaped_digit(c[1]) : -1, low = high < 0 ? -1 : escaped_digit(c[2]);
        *to = low < 0 ? *c : (char)(high * 16 + low);
        c += low < 0 ? 1 : 3;
    }
    *to = '\0';
}

static bool
may_climb(const char *path)
{
    static const char ends[] = "/\\";
    for (;; path += strcspn(path, ends) + 1) {
        size_t length = strcspn(path, ends);
        if ((length == 1 || length == 2) && strspn(path, ".") >= length)
            return true;
        if (path[length] == '\0')
            return false;
    }
}

/* Whether a server may read the path as one with a segment "." or "..", which leads to another folder than that of the
 * template: escaped slashes are slashes to some, also where a proxy has undone them once before. */
static bool
leads_elsewhere(const char *url, apr_pool_t *pool)
{
    const char *host = strstr(url, "://") + 3;
    const char *begin = host + strcspn(host, "/?#");
    char *path = apr_pstrmemdup(pool, begin, strcspn(begin, "?#"));
    for (int undone = 0; undone < 3; undone++, decode_percent(path))
        if (may_climb(path))
            return true;
    return false;
}

mc_error *
mc_tile_url_expand(const char **url, const mc_tile_url *template, const mc_tile_place *place, apr_pool_t *pool)
{
    apr_array_header_t *texts = apr_array_make(pool, template->parts->nelts + 2, sizeof(const char *));
    for (int i = 0; i < template->parts->nelts; i++) {
        const char *text = NULL;
        MC_TRY(url_part_text(&text, &APR_ARRAY_IDX(template->parts, i, url_part), template, place, pool));
        APR_ARRAY_PUSH(texts, const char *) = text;
    }
    if (template->rules->append_dimensions)
        append_dimension_params(texts, template, place, pool);
    *url = apr_array_pstrcat(pool, texts, '\0');
    if (has_url_token(template, URL_DIMENSION) && leads_elsewhere(*url, pool))
        return mc_error_create(pool, MC_ERR_INVALID_DIMENSION,
                               "the value of a dimension cannot be part of the address of a tile");
    return MC_OK;
}
