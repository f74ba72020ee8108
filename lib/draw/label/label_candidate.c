/* Labels that wait for a place: their order, copies that own all they need. */
#include <stdlib.h>
#include <string.h>

#include "draw/label/label_place.h"

int
mc_label_rank(const mc_label_candidate *a, const mc_label_candidate *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->layer != b->layer)
        return a->layer > b->layer ? -1 : 1;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    if (a->symbol->number != b->symbol->number)
        return a->symbol->number < b->symbol->number ? -1 : 1;
    int texts = strcmp(a->text, b->text);
    if (texts != 0)
        return texts;
    if (a->at[1] != b->at[1])
        return a->at[1] < b->at[1] ? -1 : 1;
    return (a->at[0] > b->at[0]) - (a->at[0] < b->at[0]);
}

mc_label_candidate *
mc_label_candidate_copy(const mc_label_candidate *from, const mc_label_pieces *pieces, const char *text)
{
    int ends = pieces == NULL ? 0 : pieces->count, points = ends == 0 ? 0 : pieces->ends[ends - 1];
    size_t point_bytes = sizeof(float) * 2 * (size_t)points, end_bytes = sizeof(int) * (size_t)ends;
    mc_label_candidate *made = malloc(sizeof(*made) + point_bytes + end_bytes + strlen(text) + 1);
    if (made == NULL)
        return NULL;
    *made = *from;
    made->shield = mc_label_shield_ref(from->shield);
    made->point_count = points;
    made->end_count = ends;
    made->points = (float *)(made + 1);
    made->ends = (int *)(made->points + 2 * (size_t)points);
    made->text = strcpy((char *)(made->ends + ends), text);
    if (ends == 0)
        return made;
    memcpy(made->points, pieces->points, point_bytes);
    memcpy(made->ends, pieces->ends, end_bytes);
    int best = mc_label_longest(pieces, &made->extent);
    made->longest_begin = best <= 0 ? 0 : pieces->ends[best - 1];
    made->longest_end = best < 0 ? 0 : pieces->ends[best];
    return made;
}

void
mc_label_candidate_free(mc_label_candidate *candidate)
{
    mc_label_shield_unref(candidate->shield);
    free(candidate);
}
