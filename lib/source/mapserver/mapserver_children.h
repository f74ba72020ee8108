/*
 * The child processes that draw map files: started when they are needed, kept for the next maps, killed when they do
 * not answer in time. They are shared by all sources of a process; a child draws one map at a time.
 */
#ifndef MC_SOURCE_MAPSERVER_MAPSERVER_CHILDREN_H
#define MC_SOURCE_MAPSERVER_MAPSERVER_CHILDREN_H

#include "mapcache/image.h"
#include "source/mapserver/mapserver_wire.h"

typedef struct mc_mapserver_question {
    const char *source; /* name, for messages */
    const char *mapfile;
    mc_mapserver_ask ask; /* without its magic, seconds and text_size */
    const char *texts;    /* of ask.text_size bytes */
    int processes;        /* children of this process beyond which none is started; 0: as many as it has workers */
} mc_mapserver_question;

/* How many processes there may be at a time, by <processes>. */
int mc_mapserver_most(int processes, const mc_ctx *ctx);

/*
 * Has one map drawn. *pixels: attached to `pool`; NULL where the question has no width. MC_ERR_CONFIG: the map file is
 * refused; MC_ERR_INVALID_DIMENSION: a value is; MC_ERR_UPSTREAM: MapServer failed, or its process has ended;
 * MC_ERR_TIMEOUT, MC_ERR_UNAVAILABLE: deadline (which the context must have), client gone, no program.
 */
mc_error *mc_mapserver_draw(mc_pixels **pixels, const mc_mapserver_question *question, mc_ctx *ctx,
                            apr_pool_t *pool) MC_CHECKED;

#endif
