/* A target in a store: an archive is made in a folder of its own, and sent as one object. */
#include <apr_strings.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/pmtiles/upload.h"
#include "copy.h"
#include "text/text.h"

enum { CONNECTIONS = 1 };

mc_error *
mc_copy_open_store(mc_copy_side *side, const char *name, apr_pool_t *pool)
{
    mc_config *config;
    char reason[128];
    const char *top = getenv("TMPDIR");
    const char *escaped = mc_xml_escape(name, pool);
    const char *text = apr_psprintf(
        pool, "<mapcache><cache name=\"%s\" type=\"pmtiles\"><url>%s</url></cache></mapcache>", escaped, escaped);
    if (strchr(name, '{') != NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "%s is no address of one archive: it has a {", name);
    MC_TRY(mc_config_load_text(&config, name, text, mc_diagnostics_create(pool), pool));
    char *folder = apr_pstrcat(pool, top == NULL || *top == '\0' ? "/tmp" : top, "/mapcache-copy-XXXXXX", NULL);
    if (mkdtemp(folder) == NULL)
        return mc_error_create(pool, MC_ERR_IO, "%s: %s (TMPDIR names the folder for what is made)", folder,
                               strerror_r(errno, reason, sizeof(reason)));
    side->folder = folder;
    side->far = config;
    side->archive = apr_pstrcat(pool, folder, "/archive.pmtiles", NULL);
    return MC_OK;
}

static bool
is_interrupted(void *baton)
{
    (void)baton;
    return mc_seed_was_interrupted();
}

mc_error *
mc_copy_send_archive(const mc_copy_side *side, const mc_log *log, apr_pool_t *pool)
{
    mc_runtime *runtime;
    if (access(side->archive, F_OK) != 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "no tile was copied: %s is left as it was", side->name);
    MC_TRY(mc_runtime_create(&runtime, side->far, CONNECTIONS, false, log, pool));
    mc_ctx ctx = { .pool = pool, .process = mc_runtime_process(runtime), .log = log, .abandoned = is_interrupted };
    mc_error *error = mc_pmtiles_upload(APR_ARRAY_IDX(side->far->caches, 0, mc_cache *), side->archive, &ctx, pool);
    mc_runtime_destroy(runtime);
    return error;
}

void
mc_copy_forget_archive(const mc_copy_side *side, apr_pool_t *pool)
{
    static const char *const endings[] = { "", ".draft", ".draft-wal", ".draft-shm", ".draft-journal" };
    if (side->folder == NULL)
        return;
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        (void)unlink(apr_pstrcat(pool, side->archive, endings[i], NULL));
    (void)rmdir(side->folder);
}
