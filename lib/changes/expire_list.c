/* See expire_list.h. */
#include "changes/expire_list.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { LEVEL_MAX = 30, DIGITS_MAX = 10, CHUNK = 65536 };

/* Half the side of the square of Web Mercator, metres. */
#define HALF_WORLD 20037508.342789244

mc_expire_list *
mc_expire_list_create(mc_expire_complain *complain, void *baton, apr_pool_t *pool)
{
    mc_expire_list *list = apr_pcalloc(pool, sizeof(*list));
    list->boxes = mc_box_set_create(pool);
    list->complain = complain;
    list->baton = baton;
    return list;
}

/* Digits up to the character `end`, which is passed. False: there is no number, or one above `max`. */
static bool
take_expire_number(int64_t *value, const char **at, char end, int64_t max)
{
    int digits = 0;
    *value = 0;
    for (; **at >= '0' && **at <= '9' && digits <= DIGITS_MAX; (*at)++, digits++)
        *value = *value * 10 + (**at - '0');
    if (digits == 0 || digits > DIGITS_MAX || *value > max || **at != end)
        return false;
    *at += end != '\0';
    return true;
}

static void
add_expired_tile(mc_expire_list *list, int z, int64_t x, int64_t y)
{
    const double side = ldexp(2 * HALF_WORLD, -z), minx = (double)x * side - HALF_WORLD;
    const double maxy = HALF_WORLD - (double)y * side;
    list->tiles++;
    mc_box_set_add(list->boxes, &(mc_extent){ minx, maxy - side, minx + side, maxy });
}

static void
take_expire_line(mc_expire_list *list)
{
    int64_t z, x, y;
    size_t size = list->size < MC_EXPIRE_LINE_MAX ? list->size : MC_EXPIRE_LINE_MAX;
    bool whole = list->size <= MC_EXPIRE_LINE_MAX && memchr(list->text, '\0', size) == NULL;
    while (size > 0 && (list->text[size - 1] == ' ' || list->text[size - 1] == '\t' || list->text[size - 1] == '\r'))
        size--;
    list->text[size] = '\0';
    list->size = 0;
    list->line++;
    if (whole && size == 0)
        return;
    const char *at = list->text;
    if (whole && take_expire_number(&z, &at, '/', LEVEL_MAX) &&
        take_expire_number(&x, &at, '/', (INT64_C(1) << z) - 1) &&
        take_expire_number(&y, &at, '\0', (INT64_C(1) << z) - 1)) {
        add_expired_tile(list, (int)z, x, y);
        return;
    }
    list->broken++;
    if (list->complain != NULL)
        list->complain(list->baton, list->line);
}

void
mc_expire_list_feed(mc_expire_list *list, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n') {
            take_expire_line(list);
            continue;
        }
        if (list->size < MC_EXPIRE_LINE_MAX)
            list->text[list->size] = bytes[i];
        list->size += list->size <= MC_EXPIRE_LINE_MAX;
    }
}

void
mc_expire_list_end(mc_expire_list *list)
{
    if (list->size > 0)
        take_expire_line(list);
}

int
mc_expire_list_read(mc_expire_list *list, int file)
{
    char chunk[CHUNK];
    for (;;) {
        ssize_t size = read(file, chunk, sizeof(chunk));
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return errno;
        if (size == 0)
            break;
        mc_expire_list_feed(list, chunk, (size_t)size);
    }
    mc_expire_list_end(list);
    return 0;
}
