/* The kinds of values that the configuration knows: how each is parsed, and how its rule reads in a complaint. */
#include "config/value.h"

#include <apr_strings.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "text/text.h"

static const char BLANKS[] = " \t\r\n\f\v";
static const char SEPARATORS[] = " ,\t\r\n";

enum { MAX_NUMBERS = 65536 };

static bool
key_has_range(const mc_key *key)
{
    return key->min != 0 || key->max != 0;
}

static bool
bounded_above(const mc_key *key)
{
    return key->max >= key->min && key_has_range(key);
}

static bool
value_in_range(const mc_key *key, double value)
{
    return !key_has_range(key) || (value >= key->min && (!bounded_above(key) || value <= key->max));
}

static const char *
skip_blanks(const char *text)
{
    return text + strspn(text, BLANKS);
}

static const char *
strip_value_blanks(const char *text, apr_pool_t *pool)
{
    text = skip_blanks(text);
    size_t size = strlen(text);
    while (size > 0 && strchr(BLANKS, text[size - 1]) != NULL)
        size--;
    return apr_pstrmemdup(pool, text, size);
}

static const char *
range_in_words(const mc_key *key, const char *what, apr_pool_t *pool)
{
    if (!key_has_range(key))
        return what;
    if (!bounded_above(key) || key->max >= INT_MAX)
        return apr_psprintf(pool, "%s, at least %.15g", what, key->min);
    return apr_psprintf(pool, "%s from %.15g to %.15g", what, key->min, key->max);
}

static const char *
choices_in_words(const mc_key *key, const char *suffix, apr_pool_t *pool)
{
    return apr_pstrcat(pool, strchr(key->choices, '|') == NULL ? "" : "one of ",
                       mc_replace_all(key->choices, "|", ", ", pool), suffix, NULL);
}

static const char *
counts_in_words(const mc_key *key, apr_pool_t *pool)
{
    if (!key_has_range(key))
        return "a list of numbers";
    if (!bounded_above(key) || key->max >= MAX_NUMBERS)
        return apr_psprintf(pool, "at least %.0f numbers", key->min);
    if (key->max > key->min)
        return apr_psprintf(pool, "%.0f to %.0f numbers", key->min, key->max);
    return key->min == 1 ? "one number" : apr_psprintf(pool, "%.0f numbers", key->min);
}

const char *
mc_value_expected(const mc_key *key, apr_pool_t *pool)
{
    switch (key->kind) {
    case MC_TEXT:
        return key->flags & MC_KEY_FILE      ? "path, as seen from the folder of this file"
               : key->flags & MC_KEY_WORKDIR ? "path, as seen from the working directory"
                                             : "text";
    case MC_LINE:
    case MC_URL:
        return "text";
    case MC_INT:
        return range_in_words(key, "a whole number", pool);
    case MC_NUMBER:
        return range_in_words(key, "a number", pool);
    case MC_BOOL:
        return "true or false";
    case MC_BOOL_CS:
        return "true or false, in lower case";
    case MC_TRUE_ONLY:
        return "true; anything else counts as false";
    case MC_FLAG:
        return "empty, or anything but false";
    case MC_PRESENT:
        return "empty: its presence counts";
    case MC_SIZE:
        return range_in_words(key, "a size in bytes, or with K, M, G or T", pool);
    case MC_CHOICE:
        return choices_in_words(key, "", pool);
    case MC_CHOICE_CI:
        return choices_in_words(key, " (in any case)", pool);
    case MC_NUMBERS:
        return counts_in_words(key, pool);
    case MC_TREE:
        return "an element with children";
    }
    return "";
}

static bool
store_bool(bool *field, bool any_case, const char *text)
{
    int (*compare)(const char *, const char *) = any_case ? strcasecmp : strcmp;
    if (compare(text, "true") != 0 && compare(text, "false") != 0)
        return false;
    *field = compare(text, "true") == 0;
    return true;
}

static bool
store_int(int *field, const mc_key *key, const char *text)
{
    int value;
    if (!mc_parse_config_int(&value, text, INT_MIN, INT_MAX) || !value_in_range(key, value))
        return false;
    *field = value;
    return true;
}

static bool
store_number(double *field, const mc_key *key, const char *text)
{
    double value;
    if (!mc_parse_double(&value, skip_blanks(text)) || !value_in_range(key, value))
        return false;
    *field = value;
    return true;
}

static bool
store_size(apr_int64_t *field, const mc_key *key, const char *text)
{
    int64_t value;
    if (!mc_parse_size(&value, skip_blanks(text)) || !value_in_range(key, (double)value))
        return false;
    *field = value;
    return true;
}

static bool
store_choice(int *field, const mc_key *key, const char *text)
{
    bool any_case = key->kind == MC_CHOICE_CI;
    size_t size = strlen(text);
    int index = 0;
    for (const char *choice = key->choices; choice != NULL; index++) {
        size_t length = strcspn(choice, "|");
        int differs = any_case ? strncasecmp(choice, text, length) : strncmp(choice, text, length);
        if (length == size && differs == 0) {
            *field = index;
            return true;
        }
        choice = choice[length] == '|' ? choice + length + 1 : NULL;
    }
    return false;
}

static int
count_numbers(const char *text)
{
    int count = 0;
    for (text += strspn(text, SEPARATORS); *text != '\0' && count <= MAX_NUMBERS; text += strspn(text, SEPARATORS)) {
        count++;
        text += strcspn(text, SEPARATORS);
    }
    return count;
}

/* NULL, or the first item that is no number, or how many there are. */
static const char *
store_numbers(mc_number_list *field, const mc_key *key, const char *text, apr_pool_t *pool)
{
    int count = count_numbers(text);
    if (count > MAX_NUMBERS || !value_in_range(key, count))
        return apr_psprintf(pool, "holds %d %s; expected: %s", count, count == 1 ? "number" : "numbers",
                            mc_value_expected(key, pool));
    mc_number_list list = { apr_palloc(pool, sizeof(double) * (size_t)(count + 1)), 0 };
    text += strspn(text, SEPARATORS);
    while (*text != '\0') {
        size_t size = strcspn(text, SEPARATORS);
        char item[1200]; /* no double needs more digits */
        if (size < sizeof(item)) {
            memcpy(item, text, size);
            item[size] = '\0';
        }
        if (size >= sizeof(item) || !mc_parse_double(&list.values[list.count], item))
            return apr_psprintf(pool, "holds %s, which is no finite number; expected: %s",
                                mc_config_quote(apr_pstrmemdup(pool, text, size), pool), mc_value_expected(key, pool));
        list.count++;
        text += size;
        text += strspn(text, SEPARATORS);
    }
    *field = list;
    return NULL;
}

/* What is wrong where the rule itself has to be said; a choice may have been misspelt. */
static const char *
describe_wrong_value(const mc_key *key, const char *text, apr_pool_t *pool)
{
    const char *core = strip_value_blanks(text, pool);
    union {
        int number;
        double real;
        apr_int64_t size;
        bool boolean;
        mc_number_list list;
    } ignored;
    if (strcmp(core, text) != 0 && mc_value_store(&ignored, key, core, pool) == NULL)
        return "is right but for the blanks around it; remove them";
    const char *expected = mc_value_expected(key, pool);
    if (key->choices == NULL)
        return apr_psprintf(pool, "is not %s", expected);
    apr_array_header_t *names = apr_array_make(pool, 8, sizeof(const char *));
    char *state;
    for (char *name = apr_strtok(apr_pstrdup(pool, key->choices), "|", &state); name != NULL;
         name = apr_strtok(NULL, "|", &state))
        APR_ARRAY_PUSH(names, const char *) = name;
    const char *nearest = mc_config_nearest(core, (const char *const *)names->elts, names->nelts);
    return nearest == NULL ? apr_psprintf(pool, "is not %s", expected)
                           : apr_psprintf(pool, "is not %s; did you mean \"%s\"?", expected, nearest);
}

/* False where the text is none of the kind's. */
static bool
store_value(void *field, const mc_key *key, const char *text)
{
    switch (key->kind) {
    case MC_INT:
        return store_int(field, key, text);
    case MC_NUMBER:
        return store_number(field, key, text);
    case MC_BOOL:
    case MC_BOOL_CS:
        return store_bool(field, key->kind == MC_BOOL, text);
    case MC_SIZE:
        return store_size(field, key, text);
    case MC_CHOICE:
    case MC_CHOICE_CI:
        return store_choice(field, key, text);
    case MC_TEXT:
        *(const char **)field = text;
        return true;
    case MC_TRUE_ONLY:
        *(bool *)field = strcmp(text, "true") == 0;
        return true;
    case MC_FLAG:
        *(bool *)field = strcasecmp(text, "false") != 0;
        return true;
    case MC_PRESENT:
        *(bool *)field = true;
        return true;
    case MC_LINE:
    case MC_URL:
    case MC_NUMBERS:
    case MC_TREE:
        break;
    }
    MC_ASSERT(key->kind != MC_TREE);
    return false;
}

const char *
mc_value_store(void *field, const mc_key *key, const char *text, apr_pool_t *pool)
{
    if (key->kind == MC_LINE || key->kind == MC_URL) {
        *(const char **)field = key->kind == MC_LINE ? mc_unwrap_text(text, pool) : mc_unwrap_url(text, pool);
        return NULL;
    }
    if (key->kind == MC_NUMBERS)
        return store_numbers(field, key, text, pool);
    return store_value(field, key, text) ? NULL : describe_wrong_value(key, text, pool);
}
