/* The names of database hosts: looked up here, because libpq waits for a name server without an end. */
#include <apr_strings.h>
#include <string.h>

#include "base/resolve.h"
#include "db/postgres/postgres_private.h"

/* Lists with commas between, as libpq takes them (manual, 34.1.1.3): a host with several addresses stands in them as
 * often. */
typedef struct place_lists {
    const char *hosts;
    const char *addresses;
    const char *ports;
    int count;
} place_lists;

static const char *
append_item(const char *list, const char *item, int count, apr_pool_t *pool)
{
    return count == 0 ? item : apr_pstrcat(pool, list, ",", item, NULL);
}

static void
add_place(place_lists *lists, const char *host, const char *address, const char *port, apr_pool_t *pool)
{
    lists->hosts = append_item(lists->hosts, host, lists->count, pool);
    lists->addresses = append_item(lists->addresses, address, lists->count, pool);
    lists->ports = append_item(lists->ports, port, lists->count, pool);
    lists->count++;
}

/* The next item of a list, and its end moved on; the last one again where there is no other. */
static const char *
next_item(const char **list, apr_pool_t *pool)
{
    size_t size = strcspn(*list, ",");
    const char *item = apr_pstrmemdup(pool, *list, size);
    if ((*list)[size] == ',')
        *list += size + 1;
    return item;
}

/* A folder of local sockets, which has no address. */
static bool
is_local(const char *host)
{
    return *host == '\0' || *host == '/' || *host == '@';
}

static mc_error *
resolve_hosts(place_lists *lists, const char *hosts, const char *ports, const mc_pg_wait *wait)
{
    mc_error *failure = MC_OK;
    bool last = false;
    while (!last) {
        last = strchr(hosts, ',') == NULL;
        const char *host = next_item(&hosts, wait->pool);
        const char *port = next_item(&ports, wait->pool);
        mc_addresses found;
        if (is_local(host)) {
            add_place(lists, host, "", port, wait->pool);
            continue;
        }
        mc_error *error = mc_resolve_host(&found, host, wait->end, wait->ctx, wait->pool);
        if (error != MC_OK && error->kind != MC_ERR_IO)
            return error;
        for (int i = 0; error == MC_OK && i < found.count; i++)
            add_place(lists, host, found.at[i].text, port, wait->pool);
        if (error != MC_OK)
            failure = error;
    }
    return lists->count > 0 ? MC_OK : failure;
}

static const char *
value_of(const PQconninfoOption *options, const char *keyword)
{
    const char *value = mc_pg_find_option(options, keyword);
    return value == NULL ? "" : value;
}

mc_error *
mc_pg_find_places(const char *const **names, const char *const **values, const mc_pg_target *target,
                  const mc_pg_wait *wait)
{
    static const char *const keywords[] = { "host", "hostaddr", "port", NULL };
    const char **found = apr_pcalloc(wait->pool, sizeof(keywords));
    *names = keywords;
    *values = found;
    PQconninfoOption *options = PQconninfoParse(target->connection, NULL);
    if (options == NULL)
        return MC_OK;
    place_lists lists = { "", "", "", 0 };
    const char *hosts = value_of(options, "host");
    mc_error *error = MC_OK;
    if (!is_local(hosts) && *value_of(options, "hostaddr") == '\0')
        error = resolve_hosts(&lists, hosts, value_of(options, "port"), wait);
    PQconninfoFree(options);
    if (lists.count > 0) {
        found[0] = lists.hosts;
        found[1] = lists.addresses;
        found[2] = lists.ports;
    }
    return error;
}
