/* See adopt.h: which reader a file is for, and the file that is written in the end. */
#include "adopt/adopt.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "adopt/draft.h"
#include "text/text.h"

static bool
has_ending(const char *file, const char *ending)
{
    size_t size = strlen(file), most = strlen(ending);
    return size > most && strcasecmp(file + size - most, ending) == 0;
}

static bool
is_data_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

mc_adopt_server
mc_adopt_server_of(const char *file)
{
    static const struct {
        const char *ending;
        mc_adopt_server server;
    } endings[] = { { ".yaml", MC_ADOPT_MAPPROXY },
                    { ".yml", MC_ADOPT_MAPPROXY },
                    { ".conf", MC_ADOPT_RENDERD },
                    { ".map", MC_ADOPT_MAPSERVER },
                    { ".xml", MC_ADOPT_GEOWEBCACHE } };
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        if (has_ending(file, endings[i].ending))
            return endings[i].server;
    return is_data_folder(file) ? MC_ADOPT_GEOWEBCACHE : MC_ADOPT_NO_SERVER;
}

mc_error *
mc_adopt_read(mc_adopt *adopt, const char *file)
{
    switch (mc_adopt_server_of(file)) {
    case MC_ADOPT_MAPPROXY:
        return mc_adopt_mapproxy(adopt, file);
    case MC_ADOPT_RENDERD:
        return mc_adopt_renderd(adopt, file);
    case MC_ADOPT_MAPSERVER:
        return mc_adopt_mapfile(adopt, file);
    case MC_ADOPT_GEOWEBCACHE:
        return mc_adopt_geowebcache(adopt, file);
    case MC_ADOPT_NO_SERVER:
        break;
    }
    return mc_error_create(
        adopt->pool, MC_ERR_CONFIG,
        "%s is of no known server, by its name: .yaml is MapProxy's, .conf renderd's, .map MapServer's, "
        ".xml or a folder GeoWebCache's",
        file);
}

mc_error *
mc_adopt_finish(mc_adopt *adopt)
{
    mc_error *first = MC_OK;
    for (int i = 0; i < adopt->later->nelts; i++) {
        mc_error *error = mc_adopt_mapproxy_seeds(adopt, APR_ARRAY_IDX(adopt->later, i, const char *));
        if (error != MC_OK && first == MC_OK)
            first = error;
        else if (error != MC_OK)
            first = mc_error_wrap(adopt->pool, error, MC_ERR_CONFIG, "%s", first->message);
    }
    adopt->later->nelts = 0;
    return first;
}

const apr_array_header_t *
mc_adopt_commands(const mc_adopt *adopt)
{
    return adopt->parts[MC_DRAFT_SEEDS];
}

/* "--" may not stand in a comment (XML 1.0, 2.5). */
static const char *
comment_words(const char *text, apr_pool_t *pool)
{
    char *copy = apr_pstrdup(pool, mc_message_text(text, 1000, pool));
    for (char *c = copy; *c != '\0'; c++)
        if (*c == '-' && (c[1] == '-' || c[1] == '\0'))
            *c = '_';
    return copy;
}

static void
put_part(apr_array_header_t *out, const mc_adopt *adopt, mc_draft_part part)
{
    if (adopt->parts[part]->nelts == 0)
        return;
    apr_array_cat(out, adopt->parts[part]);
    APR_ARRAY_PUSH(out, const char *) = "\n";
}

static void
put_notes(apr_array_header_t *out, const mc_adopt *adopt, apr_pool_t *pool)
{
    if (adopt->notes->nelts == 0)
        return;
    APR_ARRAY_PUSH(out, const char *) = "  <!-- Not taken over:\n";
    for (int i = 0; i < adopt->notes->nelts; i++) {
        const mc_adopt_note *note = &APR_ARRAY_IDX(adopt->notes, i, mc_adopt_note);
        APR_ARRAY_PUSH(out, const char *) = apr_psprintf(pool, "       %s:%d: %s\n", comment_words(note->file, pool),
                                                         note->line, comment_words(note->text, pool));
    }
    APR_ARRAY_PUSH(out, const char *) = "  -->\n\n";
}

/* Where nothing is stored, whole maps are drawn as such. */
static void
put_default_services(apr_array_header_t *out, const mc_adopt *adopt, apr_pool_t *pool)
{
    static const char *const plain[] = { "wmts", "tms", "gmaps", "demo" };
    APR_ARRAY_PUSH(out, const char *) =
        apr_psprintf(pool,
                     "  <service type=\"wms\" enabled=\"true\">\n    <full_wms>%s</full_wms>\n"
                     "    <format allow_client_override=\"true\">PNG</format>\n  </service>\n",
                     adopt->counts.caches == 0 ? "forward" : "assemble");
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        APR_ARRAY_PUSH(out, const char *) = apr_psprintf(pool, "  <service type=\"%s\" enabled=\"true\"/>\n", plain[i]);
    APR_ARRAY_PUSH(out, const char *) = "\n";
}

const char *
mc_adopt_write(const mc_adopt *adopt, const char *made_by, apr_pool_t *pool)
{
    apr_array_header_t *out = apr_array_make(pool, 256, sizeof(const char *));
    APR_ARRAY_PUSH(out, const char *) =
        apr_psprintf(pool,
                     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!--\n  Written by: %s\n  What may stand here: "
                     "mapcache.xml.sample and "
                     "docs/configuration.md; `mapcache check` says what is wrong.\n-->\n<mapcache>\n",
                     comment_words(made_by, pool));
    put_notes(out, adopt, pool);
    if (adopt->parts[MC_DRAFT_SEEDS]->nelts > 0) {
        APR_ARRAY_PUSH(out, const char *) = "  <!-- To fill the caches:\n";
        for (int i = 0; i < adopt->parts[MC_DRAFT_SEEDS]->nelts; i++)
            APR_ARRAY_PUSH(out, const char *) = apr_psprintf(
                pool, "       %s\n", comment_words(APR_ARRAY_IDX(adopt->parts[MC_DRAFT_SEEDS], i, const char *), pool));
        APR_ARRAY_PUSH(out, const char *) = "  -->\n\n";
    }
    for (mc_draft_part part = MC_DRAFT_HEAD; part < MC_DRAFT_SERVICES; part++)
        put_part(out, adopt, part);
    if (adopt->parts[MC_DRAFT_SERVICES]->nelts == 0)
        put_default_services(out, adopt, pool);
    put_part(out, adopt, MC_DRAFT_SERVICES);
    if (adopt->cors != NULL)
        APR_ARRAY_PUSH(out, const char *) = apr_psprintf(pool, "  <cors>%s</cors>\n", mc_xml_escape(adopt->cors, pool));
    APR_ARRAY_PUSH(out, const char *) = "</mapcache>\n";
    return apr_array_pstrcat(pool, out, '\0');
}
