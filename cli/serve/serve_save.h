/* The file of --save: whole, or as it was before. */
#ifndef MC_CLI_SERVE_SAVE_H
#define MC_CLI_SERVE_SAVE_H

#include <stdbool.h>
#include <sys/types.h>

#include "mapcache/error.h"

/*
 * The text is written into a draft beside the file, which only its owner may read, and the draft takes the file's
 * place. A process of its own does so with the rights that were there at mc_serve_save_open, or removes the draft where
 * this process ends without a word: root has given up its rights by the time the text is known.
 */
typedef struct mc_serve_save {
    const char *name; /* of the file; NULL: nothing is to be saved */
    int draft;        /* where the text is written to */
    int line;         /* to the process that finishes it */
    pid_t finisher;
} mc_serve_save;

/* Begins; `name` NULL: nothing. An existing file is refused without `force`, and what is no plain file always. */
mc_error *mc_serve_save_open(mc_serve_save *save, const char *name, bool force, apr_pool_t *pool) MC_CHECKED;

/* The draft becomes the file. Nothing is left to close afterwards, also not after an error. */
mc_error *mc_serve_save_finish(mc_serve_save *save, apr_pool_t *pool) MC_CHECKED;

/* Gives up what was opened, if anything: the draft is gone at the return. */
void mc_serve_save_drop(mc_serve_save *save);

#endif
