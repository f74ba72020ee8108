/*
 * Back ends that need heavy libraries live in modules of their own (mapcache-curl.so, mapcache-postgres.so, ...),
 * loaded at first use and never unloaded.
 */
#ifndef MC_BASE_MODULE_H
#define MC_BASE_MODULE_H

#include "mapcache/error.h"

/*
 * The symbol `name` of module `module` ("curl"). Looked for in $MAPCACHE_MODULES, beside this library (../modules, .),
 * then in the installed folder. MC_ERR_UNAVAILABLE with the loader's reason when it is not to be had. Thread-safe; each
 * module is opened once.
 */
mc_error *mc_module_symbol(void **symbol, const char *module, const char *name, apr_pool_t *pool) MC_CHECKED;

/* The path of the program `mapcache-NAME`, which stands beside the modules: for work in a process of its own.
 * MC_ERR_UNAVAILABLE when it is not installed. */
mc_error *mc_module_program(const char **path, const char *name, apr_pool_t *pool) MC_CHECKED;

#endif
