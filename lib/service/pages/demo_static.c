/*
 * Files that the demo pages load: our scripts and styles from memory, the libraries from folders of the assets, which
 * are in $MAPCACHE_ASSETS or beside the library. No other name is ever opened.
 */
#include <apr_strings.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/page_asset.h"
#include "service/pages/demo.h"
#include "text/text.h"

#define FILE_MAX ((off_t)8 << 20)

static const char *
library_folder(apr_pool_t *pool)
{
    Dl_info library;
    if (dladdr(mc_page_assets, &library) == 0 || library.dli_fname == NULL)
        return ".";
    const char *slash = strrchr(library.dli_fname, '/');
    return slash != NULL ? apr_pstrndup(pool, library.dli_fname, (apr_size_t)(slash - library.dli_fname)) : ".";
}

static int
open_asset(const char *path, apr_pool_t *pool)
{
    static const char *const places[] = { "../share/mapcache", "../../share/mapcache", "../../assets" };
    const char *folder = getenv("MAPCACHE_ASSETS");
    if (folder != NULL)
        return open(apr_pstrcat(pool, folder, "/", path, NULL), O_RDONLY | O_CLOEXEC);
    const char *library = library_folder(pool);
    int file = -1;
    for (size_t i = 0; file < 0 && i < sizeof(places) / sizeof(places[0]); i++)
        file = open(apr_pstrcat(pool, library, "/", places[i], "/", path, NULL), O_RDONLY | O_CLOEXEC);
    return file;
}

static mc_error *
read_asset(mc_buf **text, int file, const char *name, apr_pool_t *pool)
{
    struct stat state;
    if (fstat(file, &state) != 0 || !S_ISREG(state.st_mode) || state.st_size > FILE_MAX)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "%s is not installed with this server", name);
    *text = mc_buf_attach(mc_buf_create((size_t)state.st_size, (size_t)FILE_MAX), pool);
    MC_TRY(mc_buf_reserve(*text, (size_t)state.st_size, pool));
    while ((*text)->size < (size_t)state.st_size) {
        ssize_t size = read(file, (*text)->data + (*text)->size, (size_t)state.st_size - (*text)->size);
        if (size <= 0)
            return mc_error_create(pool, MC_ERR_IO, "%s cannot be read", name);
        (*text)->size += (size_t)size;
    }
    return MC_OK;
}

#define SCRIPT "text/javascript; charset=utf-8"
#define STYLE "text/css; charset=utf-8"

/* Libraries of npm that script/bootstrap has fetched: their paths in the folder of the assets. */
static const struct {
    const char *name, *path, *mime;
} libraries[] = {
    { "ol.js", "ol/ol.js", SCRIPT },
    { "ol.css", "ol/ol.css", STYLE },
    { "maplibre-gl.mjs", "maplibre-gl/maplibre-gl.mjs", SCRIPT },
    { "maplibre-gl-worker.mjs", "maplibre-gl/maplibre-gl-worker.mjs", SCRIPT },
    { "maplibre-gl.css", "maplibre-gl/maplibre-gl.css", STYLE },
    { "proj4.js", "proj4/proj4.js", SCRIPT },
};

static mc_error *
answer_library(mc_document *document, const char *name, const char *path, apr_pool_t *pool)
{
    int descriptor = open_asset(path, pool);
    if (descriptor < 0)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "%s is not installed with this server", name);
    mc_error *error = read_asset(&document->text, descriptor, name, pool);
    close(descriptor);
    return error;
}

mc_error *
mc_demo_static(mc_document *document, const char *name, apr_pool_t *pool)
{
    const mc_page_asset *asset = mc_page_asset_find(name);
    if (asset != NULL && strncmp(asset->mime, "text/html", 9) != 0) {
        mc_page_asset_answer(document, asset, pool);
        return MC_OK;
    }
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        if (strcmp(name, libraries[i].name) == 0) {
            document->mime = libraries[i].mime;
            return answer_library(document, name, libraries[i].path, pool);
        }
    return mc_error_create(pool, MC_ERR_NOT_FOUND, "the demo pages have no file \"%s\"",
                           mc_message_text(name, 100, pool));
}
