/* See accept.h. The header is walked where it lies: nothing is copied, since each tile's request comes this way. */
#include "service/ogcapi/accept.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

typedef struct accept_range {
    const char *type;
    size_t size;
    double weight;
} accept_range;

/* "0.125" as RFC 9110, 12.4.2 writes a weight: a digit 0 or 1, and at most three behind a point. 1 for all else. */
static double
read_range_weight(const char *text, size_t size)
{
    double weight = 0, unit = 0.1;
    if (size == 0 || size > 5 || (text[0] != '0' && text[0] != '1') || (size > 1 && text[1] != '.'))
        return 1;
    weight = text[0] - '0';
    for (size_t i = 2; i < size; i++, unit /= 10) {
        if (text[i] < '0' || text[i] > '9')
            return 1;
        weight += (text[i] - '0') * unit;
    }
    return weight > 1 ? 1 : weight;
}

/* The end of a parameter: ';', ',' or the end of the header; a quoted text may hold both. */
static const char *
find_parameter_end(const char *at)
{
    bool quoted = false;
    for (; *at != '\0' && (quoted || (*at != ',' && *at != ';')); at++) {
        if (*at == '\\' && quoted && at[1] != '\0')
            at++;
        else if (*at == '"')
            quoted = !quoted;
    }
    return at;
}

/* Reads the range at *at, which is moved behind it. False at the end of the header. */
static bool
next_range(accept_range *range, const char **at)
{
    const char *text = *at + strspn(*at, " \t,");
    if (*text == '\0')
        return false;
    *range = (accept_range){ text, strcspn(text, " \t,;"), 1 };
    text = find_parameter_end(text + range->size);
    while (*text == ';') {
        const char *name = text + 1 + strspn(text + 1, " \t");
        text = find_parameter_end(text + 1);
        if ((*name == 'q' || *name == 'Q') && name[1] == '=')
            range->weight = read_range_weight(name + 2, strcspn(name + 2, " \t,;"));
    }
    *at = text;
    return true;
}

/* How exactly a range names a type: 3 all of it, 2 what stands before the slash, 1 any type, 0 another one. */
static int
range_fits(const accept_range *range, const char *mime)
{
    size_t size = strcspn(mime, " ;"), group = strcspn(mime, "/");
    if (range->size == size && strncasecmp(range->type, mime, size) == 0)
        return 3;
    if (range->size == 3 && strncmp(range->type, "*/*", 3) == 0)
        return 1;
    return range->size == group + 2 && strncasecmp(range->type, mime, group + 1) == 0 && range->type[group + 1] == '*'
               ? 2
               : 0;
}

double
mc_accept_weight(const char *accept, const char *mime)
{
    accept_range range;
    int best = 0, count = 0;
    double weight = 0;
    if (accept == NULL)
        return 1;
    for (const char *at = accept; count < MC_ACCEPT_RANGES_MAX && next_range(&range, &at); count++) {
        int fits = range_fits(&range, mime);
        if (fits > best) {
            best = fits;
            weight = range.weight;
        }
    }
    return count == 0 ? 1 : weight;
}

int
mc_accept_choose(const char *accept, const char *const *mimes, int count)
{
    int chosen = -1;
    double most = 0;
    for (int i = 0; i < count; i++) {
        double weight = mc_accept_weight(accept, mimes[i]);
        if (weight > most) {
            most = weight;
            chosen = i;
        }
    }
    return chosen;
}
