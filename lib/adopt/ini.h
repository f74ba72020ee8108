/* Files of sections and keys, as iniparser reads them: what renderd and mod_tile are configured by. */
#ifndef MC_ADOPT_INI_H
#define MC_ADOPT_INI_H

#include "adopt/branch.h"

/*
 * A map of sections, each a map of texts. Names of keys are in lower case, those of sections as they stand. Comments
 * begin with ; or #, also behind a value without quotes; a backslash at the end of a line goes on with the next one. A
 * section that comes twice is one. MC_ERR_CONFIG with "FILE:LINE: ...": a zero byte, too many values.
 *
 * Lines that are neither a section, a key nor a comment are handed to `odd` and passed over.
 */
mc_error *mc_ini_parse(mc_branch **root, const char *file, const char *bytes, size_t size,
                       void (*odd)(void *baton, int line), void *baton, apr_pool_t *pool) MC_CHECKED;

#endif
