#include "config_text.h"

#include <apr_strings.h>
#include <string.h>

mc_node *
config_root(const char *elements)
{
    mc_node *root;
    const char *text = apr_pstrcat(pool, "<mapcache>", elements, "</mapcache>", NULL);
    ck_ok(mc_config_parse_text(&root, "test.xml", text, strlen(text), NULL, pool));
    return root;
}

mc_node *
config_elements(const char *elements)
{
    return config_root(elements)->children;
}

mc_build
config_build(void)
{
    return (mc_build){ .pool = pool,
                       .diagnostics = mc_diagnostics_create(pool),
                       .caches = apr_hash_make(pool),
                       .sources = apr_hash_make(pool) };
}
