/* Finds and opens the modules with heavy libraries. */
#include "base/module.h"

#include <apr_strings.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODULES_MAX = 16, NAME_MAX_SIZE = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `opened` */
static struct {
    char name[NAME_MAX_SIZE];
    void *handle;
} opened[MODULES_MAX];

/* The folder that this library was loaded from, or NULL. */
static const char *
own_folder(apr_pool_t *pool)
{
    Dl_info info;
    if (dladdr(&lock, &info) == 0 || info.dli_fname == NULL)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    return slash == NULL ? "." : apr_pstrndup(pool, info.dli_fname, (size_t)(slash - info.dli_fname));
}

static const char *
find_module_file(const char *module, const char *ending, int access_mode, apr_pool_t *pool)
{
    const char *folder = own_folder(pool);
    const char *const folders[] = {
        secure_getenv("MAPCACHE_MODULES"),
        folder == NULL ? NULL : apr_pstrcat(pool, folder, "/../modules", NULL),
        folder,
        folder == NULL ? NULL : apr_pstrcat(pool, folder, "/mapcache", NULL),
        folder == NULL ? NULL : apr_pstrcat(pool, folder, "/../lib/mapcache", NULL),
#ifdef MC_MODULE_DIR
        MC_MODULE_DIR,
#endif
    };
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        if (folders[i] == NULL || *folders[i] == '\0')
            continue;
        const char *file = apr_pstrcat(pool, folders[i], "/mapcache-", module, ending, NULL);
        if (access(file, access_mode) == 0)
            return file;
    }
    return NULL;
}

/* With the lock held. */
static mc_error *
open_module(void **handle, const char *module, apr_pool_t *pool)
{
    int at = 0;
    for (; at < MODULES_MAX && opened[at].handle != NULL; at++)
        if (strcmp(opened[at].name, module) == 0) {
            *handle = opened[at].handle;
            return MC_OK;
        }
    MC_ASSERT(at < MODULES_MAX && strlen(module) < NAME_MAX_SIZE);
    const char *file = find_module_file(module, ".so", R_OK, pool);
    if (file == NULL)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "the module \"%s\" is not installed", module);
    *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (*handle == NULL) {
        mc_error *reason = mc_error_create(pool, MC_ERR_IO, "%s", dlerror());
        return mc_error_wrap(pool, reason, MC_ERR_UNAVAILABLE, "the module \"%s\" cannot be loaded", module);
    }
    strcpy(opened[at].name, module);
    opened[at].handle = *handle;
    return MC_OK;
}

mc_error *
mc_module_symbol(void **symbol, const char *module, const char *name, apr_pool_t *pool)
{
    void *handle = NULL;
    pthread_mutex_lock(&lock);
    mc_error *error = open_module(&handle, module, pool);
    pthread_mutex_unlock(&lock);
    MC_TRY(error);
    *symbol = dlsym(handle, name);
    if (*symbol == NULL) {
        mc_error *reason = mc_error_create(pool, MC_ERR_IO, "no symbol \"%s\"", name);
        return mc_error_wrap(pool, reason, MC_ERR_UNAVAILABLE, "the module \"%s\" is of another version", module);
    }
    return MC_OK;
}

mc_error *
mc_module_program(const char **path, const char *name, apr_pool_t *pool)
{
    *path = find_module_file(name, "", X_OK, pool);
    return *path != NULL
               ? MC_OK
               : mc_error_create(pool, MC_ERR_UNAVAILABLE, "the program \"mapcache-%s\" is not installed", name);
}
