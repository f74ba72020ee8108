/* Functions of text: GeoServer's (str...), the standard's (OGC 05-077r4, 11.6) and QGIS'. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "draw/style/functions.h"
#include "text/text.h"
#include "text/text_case.h"
#include "text/utf8.h"

static const char *
changed_case(const char *text, mc_text_case wanted, apr_pool_t *pool)
{
    return text == NULL ? NULL : mc_text_case_change(text, wanted, pool);
}

#define TO_CASE(name, wanted)                                                                                          \
    static const char *name(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)                 \
    {                                                                                                                  \
        (void)count;                                                                                                   \
        return changed_case(mc_argument_text(args, 0, feature, pool), wanted, pool);                                   \
    }
TO_CASE(to_upper, MC_UPPER_CASE)
TO_CASE(to_lower, MC_LOWER_CASE)
TO_CASE(eval_capitalize, MC_TITLE_CASE)

/* Text from its `from`th to before its `to`th character (of UTF-8), both from 0. */
static const char *
slice_utf8_text(const char *text, double from, double to, apr_pool_t *pool)
{
    const char *begin = NULL, *at = text;
    double index = 0;
    if (text == NULL || isnan(from) || isnan(to))
        return NULL;
    for (; *at != '\0' && index < to; index++) {
        if (begin == NULL && index >= from)
            begin = at;
        at = mc_utf8_next(at);
    }
    return begin == NULL ? "" : apr_pstrmemdup(pool, begin, (size_t)(at - begin));
}

/* text; then which ends ("leading", "trailing", "both") and which character, as of <Trim>. */
static const char *
eval_trim(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const char *text = mc_argument_text(args, 0, feature, pool), *ends = "both", *what = NULL;
    if (count > 1)
        ends = mc_argument_text(args, 1, feature, pool);
    if (count > 2)
        what = mc_argument_text(args, 2, feature, pool);
    if (text == NULL || ends == NULL)
        return NULL;
    what = what == NULL || *what == '\0' ? " \t\r\n" : what;
    if (strcmp(ends, "trailing") != 0)
        text += strspn(text, what);
    size_t size = strlen(text);
    while (strcmp(ends, "leading") != 0 && size > 0 && strchr(what, text[size - 1]) != NULL)
        size--;
    return apr_pstrmemdup(pool, text, size);
}

static const char *
eval_concatenate(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const char *joined = "";
    for (int i = 0; i < count; i++) {
        const char *part = mc_argument_text(args, i, feature, pool);
        joined = part == NULL ? joined : apr_pstrcat(pool, joined, part, NULL);
    }
    return joined;
}

static const char *
eval_text_length(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    const char *text = mc_argument_text(args, 0, feature, pool);
    return text == NULL ? NULL : mc_expression_format((double)mc_utf8_length(text, text + strlen(text)), pool);
}

/* Positions from 0, the end excluded. */
static const char *
eval_substring(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    double to = count > 2 ? mc_argument_number(args, 2, feature, pool) : HUGE_VAL;
    return slice_utf8_text(mc_argument_text(args, 0, feature, pool), mc_argument_number(args, 1, feature, pool), to,
                           pool);
}

/* Position from 1, and a length (<Substring>; QGIS' substr). Below 0 it counts from the end. */
static const char *
substring_of_length(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const char *text = mc_argument_text(args, 0, feature, pool);
    double from = count > 1 ? mc_argument_number(args, 1, feature, pool) : 1;
    double size = count > 2 ? mc_argument_number(args, 2, feature, pool) : HUGE_VAL;
    if (text != NULL && from < 0)
        from = fmax(1, (double)mc_utf8_length(text, text + strlen(text)) + 1 + from);
    return slice_utf8_text(text, from - 1, from - 1 + fmax(size, 0), pool);
}

static const char *
eval_leftmost(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    return slice_utf8_text(mc_argument_text(args, 0, feature, pool), 0, mc_argument_number(args, 1, feature, pool),
                           pool);
}

static const char *
eval_rightmost(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    const char *text = mc_argument_text(args, 0, feature, pool);
    double all = text == NULL ? 0 : (double)mc_utf8_length(text, text + strlen(text));
    return slice_utf8_text(text, all - mc_argument_number(args, 1, feature, pool), HUGE_VAL, pool);
}

static const char *
last_of(const char *text, const char *what)
{
    const char *found = NULL;
    size_t size = strlen(what), all = strlen(text);
    for (size_t i = 0; i + size <= all; i++)
        if (memcmp(text + i, what, size) == 0)
            found = text + i;
    return found;
}

/* Where the second text is in the first, from 0; -1: nowhere. */
static const char *
format_index(mc_arguments args, const mc_feature *feature, apr_pool_t *pool, bool last)
{
    const char *text = mc_argument_text(args, 0, feature, pool), *what = mc_argument_text(args, 1, feature, pool);
    if (text == NULL || what == NULL)
        return NULL;
    const char *found = last ? last_of(text, what) : strstr(text, what);
    return mc_expression_format(found == NULL ? -1 : (double)mc_utf8_length(text, found), pool);
}

static const char *
index_of(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    return format_index(args, feature, pool, false);
}

static const char *
last_index_of(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    return format_index(args, feature, pool, true);
}

/* What is looked for, in which text, from which end (<StringPosition>): from 1; 0: nowhere. */
static const char *
eval_string_position(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const char *what = mc_argument_text(args, 0, feature, pool), *text = mc_argument_text(args, 1, feature, pool);
    const char *direction = count > 2 ? mc_argument_text(args, 2, feature, pool) : NULL;
    if (text == NULL || what == NULL)
        return NULL;
    bool back = direction != NULL && strcmp(direction, "backToFront") == 0;
    const char *found = back ? last_of(text, what) : strstr(text, what);
    return mc_expression_format(found == NULL ? 0 : (double)mc_utf8_length(text, found) + 1, pool);
}

static const char *
starts_with(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    const char *text = mc_argument_text(args, 0, feature, pool), *what = mc_argument_text(args, 1, feature, pool);
    return text != NULL && what != NULL && strncmp(text, what, strlen(what)) == 0 ? "true" : "false";
}

static const char *
eval_ends_with(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    const char *text = mc_argument_text(args, 0, feature, pool), *what = mc_argument_text(args, 1, feature, pool);
    size_t size = text == NULL ? 0 : strlen(text), tail = what == NULL ? 1 : strlen(what);
    return tail <= size && what != NULL && strcmp(text + size - tail, what) == 0 ? "true" : "false";
}

static const char *
equal_in_any_case(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    const char *text = mc_argument_text(args, 0, feature, pool), *what = mc_argument_text(args, 1, feature, pool);
    bool same =
        text != NULL && what != NULL && strcasecmp(mc_text_case_fold(text, pool), mc_text_case_fold(what, pool)) == 0;
    return same ? "true" : "false";
}

/* The longest text that functions make. */
enum { TEXT_MAX = 65536 };

static const char *
eval_replace(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    const char *text = mc_argument_text(args, 0, feature, pool), *what = mc_argument_text(args, 1, feature, pool);
    const char *with = mc_argument_text(args, 2, feature, pool);
    if (text == NULL || what == NULL || with == NULL || *what == '\0')
        return text;
    return strlen(text) * (strlen(with) + 1) > TEXT_MAX ? text : mc_replace_all(text, what, with, pool);
}

/* <ChangeCase>: text and direction. */
static const char *
change_case(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const char *direction = count > 1 ? mc_argument_text(args, 1, feature, pool) : NULL;
    bool lower = direction != NULL && strcmp(direction, "toLower") == 0;
    return changed_case(mc_argument_text(args, 0, feature, pool), lower ? MC_LOWER_CASE : MC_UPPER_CASE, pool);
}

static const char *
default_if_blank(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    const char *text = mc_argument_text(args, 0, feature, pool);
    bool blank = text == NULL || text[strspn(text, " \t\r\n")] == '\0';
    return blank ? mc_argument_text(args, 1, feature, pool) : text;
}

static const char *
text_itself(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    (void)count;
    return mc_argument_text(args, 0, feature, pool);
}

const mc_function mc_functions_of_text[] = {
    { "strToUpperCase", 1, 1, to_upper, false },
    { "upper", 1, 1, to_upper, false },
    { "strToLowerCase", 1, 1, to_lower, false },
    { "lower", 1, 1, to_lower, false },
    { "strCapitalize", 1, 1, eval_capitalize, false },
    { "title", 1, 1, eval_capitalize, false },
    { "ChangeCase", 1, 2, change_case, false },
    { "strTrim", 1, 1, eval_trim, false },
    { "strTrim2", 3, 3, eval_trim, false },
    { "Trim", 1, 3, eval_trim, false },
    { "strConcat", 1, MC_ARGUMENTS_MAX, eval_concatenate, false },
    { "Concatenate", 1, MC_ARGUMENTS_MAX, eval_concatenate, false },
    { "concat", 1, MC_ARGUMENTS_MAX, eval_concatenate, false },
    { "strLength", 1, 1, eval_text_length, false },
    { "StringLength", 1, 1, eval_text_length, false },
    { "length", 1, 1, eval_text_length, false },
    { "strSubstring", 3, 3, eval_substring, false },
    { "strSubstringStart", 2, 2, eval_substring, false },
    { "Substring", 1, 3, substring_of_length, false },
    { "substr", 2, 3, substring_of_length, false },
    { "left", 2, 2, eval_leftmost, false },
    { "right", 2, 2, eval_rightmost, false },
    { "strIndexOf", 2, 2, index_of, false },
    { "strLastIndexOf", 2, 2, last_index_of, false },
    { "StringPosition", 2, 3, eval_string_position, false },
    { "strPosition", 2, 3, eval_string_position, false },
    { "strStartsWith", 2, 2, starts_with, false },
    { "strEndsWith", 2, 2, eval_ends_with, false },
    { "strEqualsIgnoreCase", 2, 2, equal_in_any_case, false },
    { "strReplace", 3, 4, eval_replace, false },
    { "replace", 3, 3, eval_replace, false },
    { "strDefaultIfBlank", 2, 2, default_if_blank, false },
    { "to_string", 1, 1, text_itself, false },
    MC_FUNCTIONS_END,
};
