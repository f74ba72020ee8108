/* Values of dimensions by `datetime` and `subset`: of an interval the latest value that lies in it. */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "mapcache/trace.h"
#include "service/ogcapi/ogcapi.h"
#include "service/ogcapi/subset.h"
#include "text/text.h"

enum { QUERY_PAIRS_MAX = MC_PARAMS_MAX };

mc_dimension *
mc_ogcapi_time(const mc_tileset *tileset)
{
    for (int i = 0; i < tileset->dimension_count; i++)
        if (tileset->dimensions[i]->time || strcasecmp(tileset->dimensions[i]->name, "time") == 0)
            return tileset->dimensions[i];
    return NULL;
}

static mc_error *
refuse_axes(const mc_ogcapi_ask *ask, const char *parameter, const char *text, const char *why)
{
    return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, parameter, "%s \"%s\": %s", parameter,
                            mc_message_text(text, 100, ask->pool), why);
}

mc_error *
mc_ogcapi_subsets(mc_subset *list, int *count, const mc_ogcapi_ask *ask)
{
    const char *at = ask->subset == NULL ? NULL : ask->call->http->query;
    *count = 0;
    for (int i = 0; at != NULL && *at != '\0' && i < QUERY_PAIRS_MAX; i++) {
        size_t size = strcspn(at, "&"), name = strcspn(at, "=&");
        if (name < size && strcasecmp(mc_url_decode(at, name, true, ask->pool), "subset") == 0) {
            const char *text = mc_url_decode(at + name + 1, size - name - 1, true, ask->pool);
            const char *wrong = mc_subset_parse(list, count, text, ask->pool);
            if (wrong != NULL)
                return refuse_axes(ask, "subset", text, wrong);
        }
        at += size + (at[size] == '&');
    }
    return MC_OK;
}

/* Whether a listed value is of the wanted time or in the interval. */
static bool
time_fits(const mc_subset *wanted, const char *value)
{
    int64_t start, end, low, low_end, high, high_end;
    if (!wanted->interval && wanted->low != NULL && strcmp(wanted->low, value) == 0)
        return true;
    if (!mc_subset_time(&start, &end, value))
        return false;
    if (wanted->low != NULL && (!mc_subset_time(&low, &low_end, wanted->low) || end <= low))
        return false;
    const char *until = wanted->interval ? wanted->high : wanted->low;
    return until == NULL || (mc_subset_time(&high, &high_end, until) && start < high_end);
}

static bool
number_fits(const mc_subset *wanted, const char *value)
{
    double number, low, high;
    if (!wanted->interval)
        return wanted->low == NULL || strcasecmp(wanted->low, value) == 0;
    return mc_parse_double(&number, value) &&
           (wanted->low == NULL || (mc_parse_double(&low, wanted->low) && number >= low)) &&
           (wanted->high == NULL || (mc_parse_double(&high, wanted->high) && number <= high));
}

/* The later of two listed values: by time, by number, else by their place in the list. */
static bool
is_later(const char *value, const char *than, bool time)
{
    int64_t start, end, other;
    double number, bound;
    if (than == NULL)
        return true;
    if (time && mc_subset_time(&start, &end, value) && mc_subset_time(&other, &end, than))
        return start >= other;
    return !mc_parse_double(&number, value) || !mc_parse_double(&bound, than) || number >= bound;
}

/* The latest listed value that fits. */
static mc_error *
choose_listed(const char **value, const mc_subset *wanted, mc_dimension *dimension, bool time, const mc_ogcapi_ask *ask,
              const mc_tileset *tileset)
{
    MC_SLOW(ask->ctx);
    const apr_array_header_t *listed = mc_dimension_values_known(dimension, tileset->name, ask->ctx);
    const char *found = NULL;
    for (int i = 0; i < listed->nelts; i++) {
        const char *each = APR_ARRAY_IDX(listed, i, const char *);
        if ((time ? time_fits(wanted, each) : number_fits(wanted, each)) && is_later(each, found, time))
            found = each;
    }
    if (found == NULL)
        return mc_error_located(ask->pool, MC_ERR_NOT_FOUND, wanted->axis, "%s has no value there", dimension->name);
    *value = found;
    return MC_OK;
}

/* A point goes to the dimension as it is, which says whether it is right, where the dimension asks a database or an
 * expression; so does an interval that both ends bound, of a tileset that draws several values over each other. */
static bool
is_passed_on(const mc_subset *wanted, const mc_dimension *dimension, const mc_tileset *tileset)
{
    if (strcmp(dimension->ops->type, "values") == 0)
        return false;
    if (!wanted->interval)
        return wanted->low != NULL;
    return dimension->time && tileset->assembly != MC_ASSEMBLE_NONE && wanted->low != NULL && wanted->high != NULL;
}

static mc_error *
set_value(const char **values, const mc_subset *wanted, mc_dimension *dimension, const mc_ogcapi_ask *ask,
          const mc_tileset *tileset)
{
    bool time = dimension == mc_ogcapi_time(tileset);
    for (int i = 0; i < tileset->dimension_count; i++) {
        if (tileset->dimensions[i] != dimension)
            continue;
        if (!is_passed_on(wanted, dimension, tileset))
            return choose_listed(&values[i], wanted, dimension, time, ask, tileset);
        values[i] = wanted->interval ? apr_pstrcat(ask->pool, wanted->low, "/", wanted->high, NULL) : wanted->low;
    }
    return MC_OK;
}

/* "time" (OGC 20-058, 14.3), and "datetime" (OGC 20-057, 13). */
static bool
is_time_axis(const char *axis)
{
    return strcasecmp(axis, "time") == 0 || strcasecmp(axis, "t") == 0 || strcasecmp(axis, "datetime") == 0;
}

/* Of several collections, one at least has the axes that are named. */
static bool
is_axis_of_another(const char *axis, const mc_ogcapi_ask *ask)
{
    for (int i = 0; i < ask->layer_count; i++)
        if (mc_tileset_dimension(ask->layers[i].tileset, axis, true) >= 0)
            return true;
    return false;
}

bool
mc_ogcapi_is_place_axis(const char *axis, const mc_ogcapi_ask *ask)
{
    int which;
    const char *address = ask->operation->address;
    size_t size = strlen(address);
    bool map = size > 4 && strcmp(address + size - 4, "/map") == 0;
    return map && !is_axis_of_another(axis, ask) &&
           (mc_subset_is_place(&which, axis, true) || mc_subset_is_place(&which, axis, false));
}

static mc_error *
set_axis(const char **values, const mc_subset *wanted, const mc_ogcapi_ask *ask, const mc_tileset *tileset)
{
    int index = mc_tileset_dimension(tileset, wanted->axis, true);
    mc_dimension *dimension = index >= 0                   ? tileset->dimensions[index]
                              : is_time_axis(wanted->axis) ? mc_ogcapi_time(tileset)
                                                           : NULL;
    int64_t start, end;
    if (dimension == NULL && is_time_axis(wanted->axis))
        return MC_OK; /* without times, all times show the same (OGC 20-058, 14.2) */
    if (dimension == NULL && (is_axis_of_another(wanted->axis, ask) || mc_ogcapi_is_place_axis(wanted->axis, ask)))
        return MC_OK;
    if (dimension == NULL)
        return refuse_axes(ask, "subset", wanted->axis, "the collection has no such axis");
    if (dimension == mc_ogcapi_time(tileset) && ((wanted->low != NULL && !mc_subset_time(&start, &end, wanted->low)) ||
                                                 (wanted->high != NULL && !mc_subset_time(&start, &end, wanted->high))))
        return refuse_axes(ask, "subset", wanted->axis, "its value is no time such as \"2024-05-01T12:00:00Z\"");
    return set_value(values, wanted, dimension, ask, tileset);
}

mc_error *
mc_ogcapi_values(const char ***values, const mc_ogcapi_ask *ask, const mc_tileset *tileset)
{
    mc_subset list[MC_SUBSET_AXES_MAX], time = { .axis = "datetime" };
    int count;
    mc_dimension *dimension = mc_ogcapi_time(tileset);
    *values = mc_tileset_defaults(tileset, ask->pool);
    MC_TRY(mc_ogcapi_subsets(list, &count, ask));
    for (int i = 0; i < count; i++)
        MC_TRY(set_axis(*values, &list[i], ask, tileset));
    if (ask->datetime == NULL)
        return MC_OK;
    const char *wrong = mc_subset_datetime(&time, ask->datetime, ask->pool);
    if (wrong != NULL)
        return refuse_axes(ask, "datetime", ask->datetime, wrong);
    return dimension == NULL ? MC_OK : set_value(*values, &time, dimension, ask, tileset);
}
