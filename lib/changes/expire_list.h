/* Expire lists of osm2pgsql (--expire-output) and imposm: lines z/x/y that name tiles of Web Mercator (EPSG:3857, y
 * from the north) whose data have changed. */
#ifndef MC_CHANGES_EXPIRE_LIST_H
#define MC_CHANGES_EXPIRE_LIST_H

#include <stdint.h>

#include "changes/box_set.h"

enum { MC_EXPIRE_LINE_MAX = 40 }; /* bytes of a line; longer ones are broken */

/* Told of a line that is no tile, by its number from 1 on. */
typedef void mc_expire_complain(void *baton, int64_t line);

typedef struct mc_expire_list {
    mc_box_set *boxes; /* of the tiles so far, in EPSG:3857: memory does not grow with the list */
    int64_t tiles, broken;
    mc_expire_complain *complain;
    void *baton;
    /* The line that is being read. */
    int64_t line; /* lines before it */
    char text[MC_EXPIRE_LINE_MAX + 1];
    size_t size;
} mc_expire_list;

/* Lives in `pool`. `complain` may be NULL. */
mc_expire_list *mc_expire_list_create(mc_expire_complain *complain, void *baton, apr_pool_t *pool);

/* Takes the next bytes of a list, which may end anywhere. */
void mc_expire_list_feed(mc_expire_list *list, const char *bytes, size_t size);

/* Takes what follows the last line end. */
void mc_expire_list_end(mc_expire_list *list);

/* All of a file from its present position to its end. 0, or errno of a read that has failed. */
int mc_expire_list_read(mc_expire_list *list, int file);

#endif
