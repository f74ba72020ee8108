/*
 * Groups (GeoServer's option `group`): of all features of the same text by the same symbol only the largest is
 * labelled. Lines that meet end to end are one line before: a road comes in many pieces.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/label/label_place.h"

enum { JOINED_MAX = 512 /* lines of one group that are joined */ };

#define MEETING 1.0F /* pixels */

/* Where all parts are to be labelled (labelAllGroup), only lines are joined. */
static bool
is_same_label_group(const mc_label_candidate *a, const mc_label_candidate *b)
{
    return a->symbol == b->symbol && a->layer == b->layer && a->symbol->group &&
           (!a->symbol->label_all || (a->end_count > 0 && b->end_count > 0)) && strcmp(a->text, b->text) == 0;
}

/* Members of a group side by side, the largest first. */
static int
by_group(const void *a, const void *b)
{
    const mc_label_candidate *p = *(mc_label_candidate *const *)a, *q = *(mc_label_candidate *const *)b;
    if (p->layer != q->layer)
        return p->layer < q->layer ? -1 : 1;
    if (p->symbol->number != q->symbol->number)
        return p->symbol->number < q->symbol->number ? -1 : 1;
    int texts = strcmp(p->text, q->text);
    if (texts != 0)
        return texts;
    if (p->extent != q->extent)
        return p->extent > q->extent ? -1 : 1;
    return mc_label_rank(p, q);
}

/* ---- Lines ---- */

typedef struct label_group_line {
    const float *points;
    int count;
    bool used;
} label_group_line;

/* Points of a chain; room for all points of the group. */
typedef struct label_group_chain {
    float *points;
    int count;
} label_group_chain;

static bool
line_ends_meet(const float *a, const float *b)
{
    return fabsf(a[0] - b[0]) <= MEETING && fabsf(a[1] - b[1]) <= MEETING;
}

/* Adds a line to the end of a chain; its first point is there already. */
static void
append_line(label_group_chain *to, const label_group_line *from, bool reversed)
{
    for (int i = 1; i < from->count; i++) {
        const float *p = from->points + 2 * (reversed ? from->count - 1 - i : i);
        memcpy(to->points + 2 * to->count++, p, sizeof(float) * 2);
    }
}

/* Goes on at the end of a chain as long as there is a line that begins or ends there. */
static void
extend_chain(label_group_chain *to, label_group_line *lines, int count)
{
    for (int i = 0; i < count; i++) {
        const float *end = to->points + 2 * (to->count - 1), *last = lines[i].points + 2 * (lines[i].count - 1);
        if (lines[i].used || (!line_ends_meet(end, lines[i].points) && !line_ends_meet(end, last)))
            continue;
        append_line(to, &lines[i], !line_ends_meet(end, lines[i].points));
        lines[i].used = true;
        i = -1; /* from the first one again */
    }
}

static void
reverse_chain(label_group_chain *of)
{
    for (int a = 0, b = of->count - 1; a < b; a++, b--)
        for (int c = 0; c < 2; c++) {
            float swap = of->points[2 * a + c];
            of->points[2 * a + c] = of->points[2 * b + c];
            of->points[2 * b + c] = swap;
        }
}

/* The lines of `count` candidates as chains. */
static void
join_lines(mc_label_pieces *pieces, mc_label_candidate *const *list, int count, apr_pool_t *pool)
{
    int line_count = 0, point_count = 0;
    for (int i = 0; i < count; i++) {
        line_count += list[i]->end_count;
        point_count += list[i]->point_count;
    }
    label_group_line *lines = apr_pcalloc(pool, sizeof(*lines) * (size_t)(line_count + 1));
    *pieces = (mc_label_pieces){ .points = apr_palloc(pool, sizeof(float) * 2 * (size_t)(point_count + 1)),
                                 .ends = apr_palloc(pool, sizeof(int) * (size_t)(line_count + 1)) };
    line_count = 0;
    for (int i = 0; i < count; i++)
        for (int part = 0, begin = 0; part < list[i]->end_count; begin = list[i]->ends[part++])
            lines[line_count++] =
                (label_group_line){ list[i]->points + 2 * (size_t)begin, list[i]->ends[part] - begin, false };
    for (int i = 0, total = 0; i < line_count; i++) {
        if (lines[i].used)
            continue;
        label_group_chain made = { pieces->points + 2 * (size_t)total, lines[i].count };
        memcpy(made.points, lines[i].points, sizeof(float) * 2 * (size_t)lines[i].count);
        lines[i].used = true;
        if (line_count <= JOINED_MAX) {
            extend_chain(&made, lines, line_count);
            reverse_chain(&made);
            extend_chain(&made, lines, line_count);
        }
        total += made.count;
        pieces->ends[pieces->count++] = total;
    }
}

/* ---- Groups ---- */

/* What is left of the members list[0 .. count - 1], the largest first: one label. */
static mc_label_candidate *
join_label_group(mc_label_candidate **list, int count, apr_pool_t *pool)
{
    mc_label_candidate *first = list[0], *joined = NULL;
    for (int i = 1; i < count; i++)
        first->priority = fmax(first->priority, list[i]->priority);
    if (first->end_count > 0 && count > 1) {
        mc_label_pieces pieces;
        join_lines(&pieces, list, count, pool);
        joined = mc_label_candidate_copy(first, &pieces, first->text);
    }
    for (int i = joined == NULL ? 1 : 0; i < count; i++)
        mc_label_candidate_free(list[i]);
    return joined == NULL ? first : joined;
}

int
mc_label_join_groups(mc_label_candidate **list, int count, apr_pool_t *pool)
{
    bool any = false;
    for (int i = 0; i < count && !any; i++)
        any = list[i]->symbol->group;
    if (!any)
        return count;
    qsort(list, (size_t)count, sizeof(*list), by_group);
    int kept = 0;
    for (int begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && is_same_label_group(list[begin], list[end]); end++)
            ;
        list[kept++] = join_label_group(list + begin, end - begin, pool);
    }
    return kept;
}
