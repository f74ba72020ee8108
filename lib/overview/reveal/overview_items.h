/* Features of a level that are looked at when others have gone (overview_reveal.h), in drawing order. */
#ifndef MC_OVERVIEW_OVERVIEW_ITEMS_H
#define MC_OVERVIEW_OVERVIEW_ITEMS_H

#include "overview/reveal/overview_reveal.h"

/* Appends a copy of an item, made in the pool of the array, to an array of pointers to items. */
void mc_reveal_push_item(apr_array_header_t *items, const mc_reveal_item *item);

/* Sorts pointers to items, the one that is painted last first, and makes copies of the items that lie in memory in that
 * order: they are looked at again and again. */
void mc_reveal_sort_items(apr_array_header_t *items);

#endif
