/* Texts of the files that say who asks a store: read once, and looked at again once a second. */
#ifndef MC_CACHE_REST_AWS_TEXT_H
#define MC_CACHE_REST_AWS_TEXT_H

#include <apr_pools.h>

#include "mapcache/error.h"

/* The text of a file of at most MC_AWS_TEXT_BYTES, in the pool; NULL where there is no such file. The text is that of a
 * second ago at most: a request that comes sooner makes no call of the kernel. MC_ERR_IO, with the name of the file. */
mc_error *mc_aws_text_read(const char **text, const char *path, apr_pool_t *pool) MC_CHECKED;

/* Whoever asks next reads the files: a store has refused what they said. */
void mc_aws_texts_forget(void);

enum { MC_AWS_TEXT_BYTES = 256 << 10 };

#endif
