/*
 * Files that the demo pages load: our script and style from memory, OpenLayers from the folder ol of the assets, which
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

#define FILE_MAX ((off_t)8 << 20)

static const char *
library_folder(apr_pool_t *pool)
{
    Dl_info library;
    if (dladdr(&mc_demo_js, &library) == 0 || library.dli_fname == NULL)
        return ".";
    const char *slash = strrchr(library.dli_fname, '/');
    return slash != NULL ? apr_pstrndup(pool, library.dli_fname, (apr_size_t)(slash - library.dli_fname)) : ".";
}

static int
open_asset(const char *name, apr_pool_t *pool)
{
    static const char *const places[] = { "../share/mapcache", "../../share/mapcache", "../../assets" };
    const char *folder = getenv("MAPCACHE_ASSETS");
    if (folder != NULL)
        return open(apr_pstrcat(pool, folder, "/ol/", name, NULL), O_RDONLY | O_CLOEXEC);
    const char *library = library_folder(pool);
    int file = -1;
    for (size_t i = 0; file < 0 && i < sizeof(places) / sizeof(places[0]); i++)
        file = open(apr_pstrcat(pool, library, "/", places[i], "/ol/", name, NULL), O_RDONLY | O_CLOEXEC);
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

/* Without an asset: the name is that of a file beside the library, of the media type of `like`. */
static const struct {
    const char *name;
    const mc_page_asset *asset, *like;
} files[] = {
    [MC_DEMO_SCRIPT] = { "demo.js", &mc_demo_js, &mc_demo_js },
    [MC_DEMO_STYLE] = { "demo.css", &mc_demo_css, &mc_demo_css },
    [MC_DEMO_OL_SCRIPT] = { "ol.js", NULL, &mc_demo_js },
    [MC_DEMO_OL_STYLE] = { "ol.css", NULL, &mc_demo_css },
};

mc_error *
mc_demo_static(mc_document *document, int file, apr_pool_t *pool)
{
    const char *name = files[file].name;
    const mc_page_asset *asset = files[file].asset;
    document->mime = files[file].like->mime;
    if (asset != NULL) {
        document->text = mc_buf_attach(mc_buf_copy(asset->bytes, asset->size), pool);
        return MC_OK;
    }
    int descriptor = open_asset(name, pool);
    if (descriptor < 0)
        return mc_error_create(pool, MC_ERR_NOT_FOUND, "%s is not installed with this server", name);
    mc_error *error = read_asset(&document->text, descriptor, name, pool);
    close(descriptor);
    return error;
}
