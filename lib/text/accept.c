/* See accept.h. */
#include "text/accept.h"

#include <string.h>
#include <strings.h>

/* An item of a list, without blanks around its name. */
typedef struct accept_item {
    const char *name;
    size_t size;
    int weight;
} accept_item;

static const char *
skip_accept_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

/* Behind a text in quotes, in which a backslash makes the next character a plain one (RFC 9110, 5.6.4). */
static const char *
skip_accept_quoted(const char *at)
{
    for (at++; *at != '\0' && *at != '"'; at++)
        if (*at == '\\' && at[1] != '\0')
            at++;
    return *at == '"' ? at + 1 : at;
}

/* Up to the next comma or semicolon that stands in no quotes. */
static const char *
skip_accept_parameter(const char *at)
{
    while (*at != '\0' && *at != ',' && *at != ';')
        at = *at == '"' ? skip_accept_quoted(at) : at + 1;
    return at;
}

/* "0.75" as thousandths; digits beyond the third are passed over. */
static int
read_accept_weight(const char *at)
{
    bool negative = *at == '-';
    at += negative || *at == '+';
    if (!(*at >= '0' && *at <= '9') && !(*at == '.' && at[1] >= '0' && at[1] <= '9'))
        return MC_WEIGHT_MAX;
    if (negative)
        return 0;
    at += strspn(at, "0");
    if (*at >= '1' && *at <= '9')
        return MC_WEIGHT_MAX;
    int weight = 0, unit = MC_WEIGHT_MAX / 10;
    for (at += *at == '.'; *at >= '0' && *at <= '9' && unit > 0; at++, unit /= 10)
        weight += (*at - '0') * unit;
    return weight;
}

/* The next item, and *list behind it; false at the end. */
static bool
next_accept_item(accept_item *item, const char **list)
{
    const char *at = *list + strspn(*list, " \t,");
    if (*at == '\0')
        return false;
    item->name = at;
    item->weight = MC_WEIGHT_MAX;
    bool weighted = false;
    at = skip_accept_parameter(at);
    item->size = (size_t)(at - item->name);
    while (item->size > 0 && strchr(" \t", item->name[item->size - 1]) != NULL)
        item->size--;
    while (*at == ';') {
        at = skip_accept_blanks(at + 1);
        if ((*at == 'q' || *at == 'Q') && !weighted) {
            const char *equals = skip_accept_blanks(at + 1);
            weighted = *equals == '=';
            if (weighted)
                item->weight = read_accept_weight(skip_accept_blanks(equals + 1));
        }
        at = skip_accept_parameter(at);
    }
    *list = at;
    return true;
}

static mc_accept_match
match_accept_item(const accept_item *item, const char *name)
{
    if (item->size == strcspn(name, ";") && strncasecmp(item->name, name, item->size) == 0)
        return MC_NAMED;
    if ((item->size == 1 && *item->name == '*') || (item->size == 3 && memcmp(item->name, "*/*", 3) == 0))
        return MC_NAMED_BY_ALL;
    const char *slash = strchr(name, '/');
    size_t kind = slash == NULL ? 0 : (size_t)(slash - name) + 1;
    if (kind > 0 && item->size == kind + 1 && item->name[kind] == '*' && strncasecmp(item->name, name, kind) == 0)
        return MC_NAMED_BY_KIND;
    return MC_NOT_NAMED;
}

int
mc_accept_share(mc_accept_match *match, const char *list, const char *name)
{
    accept_item item;
    int weight = 0;
    *match = MC_NOT_NAMED;
    while (next_accept_item(&item, &list)) {
        mc_accept_match found = match_accept_item(&item, name);
        if (found > *match) {
            *match = found;
            weight = item.weight;
        }
    }
    return weight;
}

int
mc_accept_weight(const char *accept, const char *name)
{
    mc_accept_match match;
    if (accept == NULL || accept[strspn(accept, " \t,")] == '\0')
        return MC_WEIGHT_MAX;
    return mc_accept_share(&match, accept, name);
}

int
mc_accept_choose(const char *accept, const char *const *names, int count)
{
    int chosen = -1, most = 0;
    for (int i = 0; i < count; i++) {
        int weight = mc_accept_weight(accept, names[i]);
        if (weight > most) {
            most = weight;
            chosen = i;
        }
    }
    return chosen;
}
