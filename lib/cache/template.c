/*
 * Paths from templates. A template is taken apart once, when the configuration is read; a request then only copies and
 * prints. Which token counts how often is docs/reference/configuration.md 5.1, 5.3.2 and 5.5.
 */
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cache/cache_base.h"

typedef enum template_token {
    LITERAL,
    TILESET,
    GRID,
    EXTENSION,
    DIMENSIONS,
    DIMENSION,
    NUMBER, /* a number of mc_template_format; of disk in decimal */
} template_token;

typedef struct template_piece {
    template_token token;
    const char *text; /* as it stands in the template; of a literal, all of it */
    size_t size;
    const char *name; /* of a DIMENSION */
    mc_template_format number;
} template_piece;

struct mc_template {
    mc_template_rules rules;
    const char *formats[MC_FORMAT_COUNT];
    int count;
    template_piece *pieces;
};

static const char *const number_names[] = {
#define X(name) #name,
    MC_TEMPLATE_FORMATS(X)
#undef X
};

const char *
mc_cache_dimension_key(const mc_tile_key *key, apr_pool_t *pool)
{
    if (key->dimension_count == 0)
        return "";
    const char *joined = key->dimensions[key->dimension_count - 1].value;
    for (int i = key->dimension_count - 2; i >= 0; i--)
        joined = apr_pstrcat(pool, joined, "#", key->dimensions[i].value, NULL);
    return joined;
}

bool
mc_number_format_valid(const char *format)
{
    int conversions = 0;
    if (strlen(format) > 64)
        return false;
    for (const char *at = format; *at != '\0'; at++) {
        if (*at != '%')
            continue;
        if (*++at == '%')
            continue;
        at += strspn(at, "-+ #0");
        size_t width = strspn(at, "0123456789");
        at += width;
        size_t precision = 0;
        if (*at == '.') {
            precision = strspn(++at, "0123456789");
            at += precision;
        }
        if (width > 2 || precision > 2 || *at == '\0' || strchr("diuxXo", *at) == NULL)
            return false;
        conversions++;
    }
    return conversions == 1;
}

static bool
is_number_token(mc_template_format *number, const char *name, size_t size)
{
    for (int i = 0; i < MC_FORMAT_COUNT; i++)
        if (strlen(number_names[i]) == size && memcmp(number_names[i], name, size) == 0) {
            *number = (mc_template_format)i;
            return true;
        }
    return false;
}

/* Whether the token counts under the rules: of sqlite by counts and top, of disk by the "else" of
 * docs/reference/configuration.md 5.5. */
static bool
number_counts(mc_template_format number, const char *text, const mc_template_rules *rules)
{
    if (number == MC_FORMAT_z)
        return true;
    if (!rules->sqlite)
        return number == MC_FORMAT_x || number == MC_FORMAT_y ||
               (number == MC_FORMAT_inv_x && strstr(text, "{x}") == NULL) ||
               (number == MC_FORMAT_inv_y && strstr(text, "{y}") == NULL);
    if (number >= MC_FORMAT_top)
        return rules->top > 0;
    return number < MC_FORMAT_y ? rules->columns > 0 : rules->rows > 0;
}

/* What "{...}" of `size` bytes stands for; a LITERAL where nothing. */
static template_piece
read_token(const char *at, size_t size, const char *text, const mc_template_rules *rules, apr_pool_t *pool)
{
    template_piece piece = { .token = LITERAL, .text = at, .size = size };
    const char *name = at + 1;
    size_t length = size - 2;
    bool once = rules->sqlite; /* only the first one of these counts */
    if (length == 7 && memcmp(name, "tileset", 7) == 0)
        piece.token = TILESET;
    else if (length == 4 && memcmp(name, "grid", 4) == 0)
        piece.token = GRID;
    else if (length == 3 && memcmp(name, "dim", 3) == 0)
        piece.token = DIMENSIONS;
    else if (length > 4 && memcmp(name, "dim:", 4) == 0) {
        piece.token = DIMENSION;
        piece.name = apr_pstrmemdup(pool, name + 4, length - 4);
    } else {
        once = false;
        if (!rules->sqlite && length == 3 && memcmp(name, "ext", 3) == 0)
            piece.token = EXTENSION;
        else if (is_number_token(&piece.number, name, length) && number_counts(piece.number, text, rules))
            piece.token = NUMBER;
    }
    if (once && strstr(text, apr_pstrmemdup(pool, at, size)) != at)
        piece.token = LITERAL;
    return piece;
}

mc_template *
mc_template_compile(const char *text, const mc_template_rules *rules, apr_pool_t *pool)
{
    mc_template *template = apr_pcalloc(pool, sizeof(*template));
    template->rules = *rules;
    text = apr_pstrdup(pool, text);
    for (int i = 0; i < MC_FORMAT_COUNT; i++)
        template->formats[i] = rules->formats == NULL || rules->formats[i] == NULL ? "%d" : rules->formats[i];
    template->pieces = apr_pcalloc(pool, sizeof(template_piece) * (strlen(text) + 1));
    for (const char *at = text; *at != '\0';) {
        const char *close = *at == '{' ? strchr(at, '}') : NULL;
        const char *inner = close == NULL ? NULL : memchr(at + 1, '{', (size_t)(close - at - 1));
        size_t size = close != NULL && inner == NULL ? (size_t)(close - at) + 1 : 1 + strcspn(at + 1, "{");
        template_piece next = { .token = LITERAL, .text = at, .size = size };
        if (close != NULL && inner == NULL)
            next = read_token(at, size, text, rules, pool);
        template->pieces[template->count++] = next;
        at += size;
    }
    return template;
}

/* Whether a piece is one of the tokens, a bit each. */
static bool
template_has(const mc_template *template, unsigned tokens)
{
    for (int i = 0; i < template->count; i++)
        if ((1u << template->pieces[i].token & tokens) != 0)
            return true;
    return false;
}

bool
mc_template_constant(const mc_template *template)
{
    return !template_has(template, ~(1u << LITERAL));
}

bool
mc_template_by_tile(const mc_template *template)
{
    return template_has(template, 1u << NUMBER);
}

bool
mc_template_by_dimension(const mc_template *template)
{
    return template_has(template, 1u << DIMENSIONS | 1u << DIMENSION);
}

bool
mc_template_by_grid(const mc_template *template)
{
    return template_has(template, 1u << GRID);
}

static int64_t
template_number_value(mc_template_format number, const mc_template *template, const mc_tile_key *key)
{
    const mc_template_rules *rules = &template->rules;
    const mc_level *level = &key->grid->levels[key->z];
    int64_t columns = rules->sqlite ? rules->columns : 1;
    int64_t rows = rules->sqlite ? rules->rows : 1;
    int64_t inv_x = (int64_t)level->columns - key->x - 1;
    int64_t inv_y = (int64_t)level->rows - key->y - 1;
    int top = rules->top < key->grid->level_count ? rules->top : key->grid->level_count - 1;
    const mc_level *above = &key->grid->levels[top < 0 ? 0 : top];
    int64_t top_x = (int64_t)key->x * above->columns / level->columns;
    int64_t top_y = (int64_t)key->y * above->rows / level->rows;
    switch (number) {
    case MC_FORMAT_z:
        return key->z;
    case MC_FORMAT_x:
        return key->x / columns * columns;
    case MC_FORMAT_div_x:
        return key->x / columns;
    case MC_FORMAT_inv_x:
        return inv_x / columns * columns;
    case MC_FORMAT_inv_div_x:
        return inv_x / columns;
    case MC_FORMAT_y:
        return key->y / rows * rows;
    case MC_FORMAT_div_y:
        return key->y / rows;
    case MC_FORMAT_inv_y:
        return inv_y / rows * rows;
    case MC_FORMAT_inv_div_y:
        return inv_y / rows;
    case MC_FORMAT_top:
        return rules->top;
    case MC_FORMAT_top_x:
        return top_x;
    case MC_FORMAT_top_y:
        return top_y;
    case MC_FORMAT_inv_top_x:
        return above->columns - 1 - top_x;
    default:
        return above->rows - 1 - top_y;
    }
}

static void
put_template_number(mc_text_out *out, const char *format, int64_t number)
{
    char digits[192];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* mc_number_format_valid has let it pass */
    int size = snprintf(digits, sizeof(digits), format, (int)number);
#pragma GCC diagnostic pop
    mc_text_put(out, digits, size < 0 ? 0 : (size_t)size < sizeof(digits) ? (size_t)size : sizeof(digits) - 1);
}

/* In URLs as it is: what it may mean there is escaped or refused afterwards. */
static void
put_dimension_value(mc_text_out *out, const mc_dimension_value *dimension, const mc_template *template)
{
    if (template->rules.url)
        mc_text_put_string(out, dimension->value);
    else
        mc_text_put_dimension(out, dimension->value, template->rules.allow_paths && dimension->from_backend);
}

static void
put_dimensions(mc_text_out *out, const mc_template *template, const mc_tile_key *key)
{
    for (int i = key->dimension_count - 1; i >= 0; i--) {
        const mc_dimension_value *dimension = &key->dimensions[i];
        mc_text_put(out, "#", 1);
        if (!template->rules.sqlite) {
            mc_text_put_string(out, dimension->name);
            mc_text_put(out, "#", 1);
        }
        put_dimension_value(out, dimension, template);
    }
}

static void
put_piece(mc_text_out *out, const template_piece *piece, const mc_template *template, const mc_tile_key *key)
{
    switch (piece->token) {
    case TILESET:
        mc_text_put_tileset(out, key);
        return;
    case GRID:
        mc_text_put_string(out, key->grid->name);
        return;
    case EXTENSION:
        mc_text_put_string(out, key->extension);
        return;
    case NUMBER:
        put_template_number(out, template->formats[piece->number], template_number_value(piece->number, template, key));
        return;
    case DIMENSIONS:
        if (key->dimension_count == 0)
            break; /* the token stays: existing stores depend on it */
        put_dimensions(out, template, key);
        return;
    case DIMENSION:
        for (int i = 0; i < key->dimension_count; i++)
            if (strcmp(key->dimensions[i].name, piece->name) == 0) {
                put_dimension_value(out, &key->dimensions[i], template);
                return;
            }
        break;
    case LITERAL:
        break;
    }
    mc_text_put(out, piece->text, piece->size);
}

mc_error *
mc_template_expand(char *out, const mc_template *template, const mc_tile_key *key, apr_pool_t *pool)
{
    mc_text_out text = { .out = out };
    *out = '\0';
    for (int i = 0; i < template->count; i++)
        put_piece(&text, &template->pieces[i], template, key);
    if (template->rules.url) { /* no file of ours */
        mc_tile_key plain = *key;
        plain.client_named = false;
        return mc_text_check(&text, &plain, pool);
    }
    if (template->rules.sqlite && key->client_named)
        MC_TRY(mc_text_check_database(&text, pool));
    return mc_text_check(&text, key, pool);
}

/* The letter of a number that is marked. */
static char
mark_of_number(mc_template_format number)
{
    switch (number) {
    case MC_FORMAT_z:
        return 'z';
    case MC_FORMAT_x:
        return 'x';
    case MC_FORMAT_inv_x:
        return 'X';
    case MC_FORMAT_y:
        return 'y';
    case MC_FORMAT_div_x:
        return 'u';
    case MC_FORMAT_inv_div_x:
        return 'U';
    case MC_FORMAT_div_y:
        return 'v';
    case MC_FORMAT_inv_div_y:
        return 'V';
    default:
        return 'Y';
    }
}

mc_error *
mc_template_expand_marked(char *out, const mc_template *template, const mc_tile_key *key, bool levels, apr_pool_t *pool)
{
    mc_text_out text = { .out = out };
    mc_tile_key plain = *key;
    *out = '\0';
    plain.client_named = false;
    for (int i = 0; i < template->count; i++) {
        const template_piece *piece = &template->pieces[i];
        if (piece->token == NUMBER && (levels || piece->number != MC_FORMAT_z))
            mc_text_put(&text, (const char[]){ MC_TEMPLATE_MARK, mark_of_number(piece->number) }, 2);
        else
            put_piece(&text, piece, template, key);
    }
    return mc_text_check(&text, &plain, pool);
}

bool
mc_template_pattern(char *pattern, const mc_template *template)
{
    mc_text_out text = { .out = pattern };
    *pattern = '\0';
    for (int i = 0; i < template->count; i++) {
        const template_piece *piece = &template->pieces[i];
        if (piece->token != LITERAL) {
            mc_text_put(&text, "*", 1);
            continue;
        }
        for (size_t at = 0; at < piece->size; at++) {
            if (strchr("*?[\\", piece->text[at]) != NULL)
                mc_text_put(&text, "\\", 1);
            mc_text_put(&text, &piece->text[at], 1);
        }
    }
    return !text.overflow;
}

const char *
mc_template_folder(const char *text, apr_pool_t *pool)
{
    const char *end = text + strcspn(text, "{");
    while (end > text && *end != '/')
        end--;
    return end > text ? apr_pstrmemdup(pool, text, (size_t)(end - text)) : NULL;
}
