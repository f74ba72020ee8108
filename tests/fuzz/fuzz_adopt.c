/* Configurations of other servers, of which a mapcache.xml is made: the first byte says of which server. Whatever they
 * say, what is written is well-formed, with the root of a configuration; styles are well-formed, too. */
#include <apr_strings.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adopt/draft.h"
#include "fuzz_support.h"
#include "mapcache/config.h"

/* A reader takes a file; what that includes by a relative name is looked for beside it. */
static const char *
write_input(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    static int file = -1;
    if (file < 0)
        file = memfd_create("adopt", MFD_CLOEXEC);
    MC_ASSERT(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    return apr_psprintf(pool, "/proc/self/fd/%d", file);
}

static mc_error *
read_input(mc_adopt *adopt, int server, const char *path)
{
    switch (server) {
    case 0:
        return mc_adopt_mapproxy(adopt, path);
    case 1:
        return mc_adopt_renderd(adopt, path);
    case 2:
        return mc_adopt_mapfile(adopt, path);
    default:
        return mc_adopt_geowebcache(adopt, path);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    apr_pool_t *pool;
    mc_node *root;
    if (size == 0)
        return 0;
    apr_pool_create(&pool, NULL);
    mc_adopt *adopt = mc_adopt_create(pool);
    mc_adopt_write_styles_to(adopt, "styles");
    const char *path = write_input(data + 1, size - 1, pool);
    mc_error *error = read_input(adopt, data[0] % 4, path);
    MC_ASSERT(error == MC_OK || error->kind == MC_ERR_CONFIG);
    error = mc_adopt_finish(adopt);
    MC_ASSERT(error == MC_OK || error->kind == MC_ERR_CONFIG);
    const char *text = mc_adopt_write(adopt, "mapcache adopt", pool);
    error = mc_config_parse_text(&root, "mapcache.xml", text, strlen(text), NULL, pool);
    MC_ASSERT(error == MC_OK);
    const apr_array_header_t *styles = mc_adopt_styles(adopt);
    for (int i = 0; i < styles->nelts; i++) {
        const mc_adopt_style *style = &APR_ARRAY_IDX(styles, i, mc_adopt_style);
        MC_ASSERT(strchr(style->file, '/') == NULL && *style->file != '.');
        error = mc_xml_parse_text(&root, style->file, style->text, strlen(style->text), pool);
        MC_ASSERT(error == MC_OK);
    }
    apr_pool_destroy(pool);
    return 0;
}
