/* Grid sets of GeoWebCache: those that are there without being configured, and those with resolutions or scales. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "adopt/geowebcache.h"
#include "mapcache/grid.h"
#include "text/text.h"

int
mc_gwc_numbers(double *numbers, int most, mc_branch *list)
{
    int count = 0;
    for (mc_branch *child = list == NULL ? NULL : list->children; child != NULL && count < most; child = child->next) {
        child->taken = true;
        if (child->text == NULL || !mc_parse_double(&numbers[count++], child->text))
            return 0;
    }
    return count;
}

static const char *
write_gwc_grid(mc_gwc_reader *gwc, const char *own, const char *srs, const double box[4], const double *resolutions,
               int count, const int size[2], bool top_left)
{
    bool xy;
    mc_adopt *adopt = gwc->adopt;
    const char *list = "", *name = mc_draft_name(adopt, MC_DRAFT_GRIDS, mc_replace_all(own, ",", "_", gwc->pool));
    int epsg = mc_crs_epsg(srs, &xy);
    for (int i = 0; i < count; i++)
        list = apr_pstrcat(gwc->pool, list, i > 0 ? " " : "", mc_double_text('g', 17, resolutions[i], gwc->pool), NULL);
    mc_draft_put(adopt, MC_DRAFT_GRIDS, "  <grid name=\"%s\">\n    <srs>EPSG:%d</srs>\n%s",
                 mc_xml_escape(name, gwc->pool), epsg == 900913 ? 3857 : epsg,
                 epsg == 900913 || epsg == 3857 ? "    <srsalias>EPSG:900913</srsalias>\n" : "");
    mc_draft_put(adopt, MC_DRAFT_GRIDS, "    <extent>%s %s %s %s</extent>\n    <size>%d %d</size>\n",
                 mc_double_text('g', 17, box[0], gwc->pool), mc_double_text('g', 17, box[1], gwc->pool),
                 mc_double_text('g', 17, box[2], gwc->pool), mc_double_text('g', 17, box[3], gwc->pool), size[0],
                 size[1]);
    mc_draft_put(adopt, MC_DRAFT_GRIDS,
                 "    <resolutions>%s</resolutions>\n    <units>%s</units>\n    <origin>%s</origin>\n  </grid>\n", list,
                 mc_crs_metres_per_unit(epsg == 900913 ? 3857 : epsg) > 1000 ? "dd" : "m",
                 top_left ? "top-left" : "bottom-left");
    adopt->counts.grids++;
    return name;
}

/* The grid sets that are there without being configured. */
static const char *
write_builtin_grid(mc_gwc_reader *gwc, const char *name)
{
    static const double degrees[4] = { -180, -90, 180, 90 },
                        metres[4] = { -20037508.34, -20037508.34, 20037508.34, 20037508.34 };
    static const int size[2] = { 256, 256 };
    double resolutions[31];
    bool geographic = strcmp(name, "EPSG:4326") == 0;
    if (!geographic && strcmp(name, "EPSG:900913") != 0)
        return NULL;
    int count = geographic ? 22 : 31;
    for (int i = 0; i < count; i++)
        resolutions[i] = ldexp(geographic ? 0.703125 : 156543.03390625, -i);
    return write_gwc_grid(gwc, name, name, geographic ? degrees : metres, resolutions, count, size, false);
}

static const char *
write_configured_grid(mc_gwc_reader *gwc, mc_branch *set, const char *name)
{
    double box[4], resolutions[MC_GWC_LEVELS], side[2] = { 256, 256 }, metres = 0, pixel = 0.00028;
    const char *srs = apr_pstrcat(gwc->pool, "EPSG:", mc_branch_text(set, "srs.number", ""), NULL);
    bool xy;
    int epsg = mc_crs_epsg(srs, &xy);
    mc_branch_pass(mc_branch_get(set, "name"));
    mc_branch_pass(mc_branch_get(set, "scaleNames"));
    mc_branch_pass(mc_branch_get(set, "yCoordinateFirst"));
    if (epsg == 0 || mc_gwc_numbers(box, 4, mc_branch_find(set, "extent.coords")) != 4)
        return NULL;
    (void)mc_parse_double(&side[0], mc_branch_text(set, "tileWidth", "256"));
    (void)mc_parse_double(&side[1], mc_branch_text(set, "tileHeight", "256"));
    (void)mc_parse_double(&pixel, mc_branch_text(set, "pixelSize", "0.00028"));
    if (!mc_parse_double(&metres, mc_branch_text(set, "metersPerUnit", "")))
        metres = mc_crs_metres_per_unit(epsg == 900913 ? 3857 : epsg);
    int count = mc_gwc_numbers(resolutions, MC_GWC_LEVELS, mc_branch_get(set, "resolutions"));
    if (count == 0) {
        count = mc_gwc_numbers(resolutions, MC_GWC_LEVELS, mc_branch_get(set, "scaleDenominators"));
        for (int i = 0; i < count; i++)
            resolutions[i] = resolutions[i] * pixel / metres;
    }
    const int size[2] = { (int)side[0], (int)side[1] };
    for (int i = 0; i < count; i++)
        if (!(resolutions[i] > 0) || !isfinite(resolutions[i]) || (i > 0 && resolutions[i] >= resolutions[i - 1]))
            return NULL;
    if (count == 0 || !(box[0] < box[2]) || !(box[1] < box[3]) ||
        !(side[0] >= 1 && side[0] <= 16384 && side[1] >= 1 && side[1] <= 16384))
        return NULL;
    return write_gwc_grid(gwc, name, srs, box, resolutions, count, size, mc_branch_is_true(set, "alignTopLeft", false));
}

const char *
mc_gwc_find_grid(mc_gwc_reader *gwc, const char *name, const mc_branch *at)
{
    const char *known = apr_hash_get(gwc->grids, name, APR_HASH_KEY_STRING);
    if (known != NULL)
        return *known == '\0' ? NULL : known;
    const char *made = NULL;
    mc_branch *sets = mc_branch_get(gwc->root, "gridSets"), *found = NULL;
    for (mc_branch *set = sets == NULL ? NULL : sets->children; set != NULL && found == NULL; set = set->next)
        for (const mc_branch *value = set->children; value != NULL; value = value->next)
            if (strcmp(value->key, "name") == 0 && value->text != NULL && strcmp(value->text, name) == 0)
                found = set;
    if (found != NULL) {
        found->taken = true;
        made = write_configured_grid(gwc, found, name);
    } else {
        made = write_builtin_grid(gwc, name);
    }
    if (made == NULL)
        mc_draft_note_at(
            gwc->adopt, found != NULL ? found : at, "grid set %s is not taken over: %s",
            mc_message_text(name, 100, gwc->pool),
            found != NULL ? "its EPSG code, extent, and falling resolutions or scaleDenominators are needed as numbers"
                          : "it is not configured here; write a <grid>");
    apr_hash_set(gwc->grids, apr_pstrdup(gwc->pool, name), APR_HASH_KEY_STRING, made == NULL ? "" : made);
    return made;
}
