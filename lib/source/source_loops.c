/* Sources that draw from other sources: none may, on whatever way, draw from itself. */
#include <apr_hash.h>
#include <apr_strings.h>

#include "mapcache/source.h"

typedef struct loop_search {
    const mc_source *wanted;
    apr_hash_t *seen; /* by address */
    bool found;
    apr_pool_t *pool;
} loop_search;

static void
search_source(void *baton, mc_source *source)
{
    loop_search *search = baton;
    search->found = search->found || source == search->wanted;
    if (search->found || source->ops->parts == NULL)
        return;
    mc_source **key = apr_pmemdup(search->pool, &source, sizeof(source));
    if (apr_hash_get(search->seen, key, sizeof(source)) != NULL)
        return;
    apr_hash_set(search->seen, key, sizeof(source), source);
    source->ops->parts(source, search_source, search);
}

void
mc_source_refuse_loop(mc_source *source, const mc_node *node, mc_build *build)
{
    loop_search search = { source, apr_hash_make(build->pool), false, build->pool };
    if (source->ops->parts == NULL)
        return;
    source->ops->parts(source, search_source, &search);
    if (search.found)
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "source \"%s\" draws from itself, by way of the tilesets and sources that it names", source->name);
}
