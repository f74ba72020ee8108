/* Which protocols a configuration offers: <service> elements, or the legacy <services> block
 * (docs/reference/configuration.md 8). */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "server/server_private.h"

enum { KINDS_MAX = 16 };

/* Services by their place in the order of dispatch. */
typedef struct offered {
    mc_service *services[KINDS_MAX];
} offered;

static int
kind_index(const mc_service *service)
{
    for (int i = 0; mc_service_kinds[i] != NULL; i++)
        if (mc_service_kinds[i] == service->ops)
            return i;
    return -1;
}

static void
register_offered_service(offered *list, mc_service *service)
{
    int index = kind_index(service);
    MC_ASSERT(index >= 0 && index < KINDS_MAX);
    list->services[index] = service; /* of a repeated type the last one wins */
}

static void
read_service(offered *list, const mc_node *node, mc_build *build)
{
    mc_service *service = mc_service_from_config(node, build);
    if (service != NULL)
        register_offered_service(list, service);
}

static bool
legacy_enabled(const mc_node *services, const char *type)
{
    const mc_node *child = mc_node_child(services, type);
    return child != NULL && (child->text == NULL || strcasecmp(child->text, "false") != 0);
}

static void
read_legacy(offered *list, const mc_node *services, mc_build *build)
{
    static const char *const types[] = { "wms", "wmts", "ve", "tms", "kml", "gmaps", "demo" };
    mc_complain(build->diagnostics, MC_WARNING, services,
                "the older form; write <service type=\"wms\" enabled=\"true\"/> and so on");
    if (legacy_enabled(services, "kml") && !legacy_enabled(services, "tms"))
        mc_complain(build->diagnostics, MC_REFUSED, services, "kml needs tms to be enabled too");
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        bool enabled = legacy_enabled(services, types[i]) || (i == 0 && legacy_enabled(services, "demo"));
        for (int kind = 0; enabled && mc_service_kinds[kind] != NULL; kind++)
            if (strcmp(mc_service_kinds[kind]->type, types[i]) == 0) {
                mc_service *service = mc_service_kinds[kind]->from_config(mc_service_kinds[kind], NULL, build);
                if (service != NULL)
                    register_offered_service(list, service);
            }
    }
    if (!legacy_enabled(services, "wms") && !legacy_enabled(services, "tms") && !legacy_enabled(services, "wmts") &&
        !legacy_enabled(services, "demo"))
        mc_complain(build->diagnostics, MC_REFUSED, services, "at least one of wms, tms and wmts must be enabled");
}

apr_array_header_t *
mc_services_from_config(const apr_array_header_t *nodes, const mc_node *legacy, mc_build *build)
{
    offered list = { { NULL } };
    for (int i = 0; nodes != NULL && i < nodes->nelts; i++)
        read_service(&list, APR_ARRAY_IDX(nodes, i, const mc_node *), build);
    if ((nodes == NULL || nodes->nelts == 0) && legacy != NULL)
        read_legacy(&list, legacy, build);
    apr_array_header_t *services = apr_array_make(build->pool, 8, sizeof(mc_service *));
    for (int i = 0; i < KINDS_MAX; i++)
        if (list.services[i] != NULL)
            APR_ARRAY_PUSH(services, mc_service *) = list.services[i];
    return services;
}
