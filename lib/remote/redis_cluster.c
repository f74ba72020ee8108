#include "remote/redis_cluster.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define REFRESH_PAUSE APR_USEC_PER_SEC

struct mc_cluster {
    pthread_mutex_t lock; /* of all below */
    bool known;
    apr_time_t asked;           /* mc_clock_now(): when all slots were asked for */
    int node_count, next_place; /* next_place: where a place is looked for once all are taken */
    mc_cluster_node nodes[MC_CLUSTER_NODES_MAX];
    short owners[MC_CLUSTER_SLOTS]; /* number of the node and 1; 0: not known */
};

static apr_status_t
end_cluster(void *data)
{
    mc_cluster *cluster = data;
    pthread_mutex_destroy(&cluster->lock);
    free(cluster);
    return APR_SUCCESS;
}

mc_cluster *
mc_cluster_create(apr_pool_t *pool)
{
    mc_cluster *cluster = calloc(1, sizeof(*cluster));
    MC_ASSERT(cluster != NULL);
    pthread_mutex_init(&cluster->lock, NULL);
    apr_pool_cleanup_register(pool, cluster, end_cluster, apr_pool_cleanup_null);
    return cluster;
}

/* CRC-16 of XMODEM: polynomial 0x1021, begins with 0. */
static unsigned
crc16_of(const char *bytes, size_t size)
{
    unsigned crc = 0;
    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned)(unsigned char)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
    }
    return crc;
}

/* Of a key with {text} only that text counts. */
int
mc_cluster_slot(const char *key, size_t size)
{
    const char *open = memchr(key, '{', size);
    const char *close = open == NULL ? NULL : memchr(open, '}', size - (size_t)(open - key));
    if (close != NULL && close > open + 1)
        return (int)(crc16_of(open + 1, (size_t)(close - open - 1)) % MC_CLUSTER_SLOTS);
    return (int)(crc16_of(key, size) % MC_CLUSTER_SLOTS);
}

bool
mc_cluster_is_known(mc_cluster *cluster)
{
    pthread_mutex_lock(&cluster->lock);
    bool known = cluster->known;
    pthread_mutex_unlock(&cluster->lock);
    return known;
}

void
mc_cluster_tell(mc_cluster *cluster)
{
    pthread_mutex_lock(&cluster->lock);
    cluster->known = true;
    pthread_mutex_unlock(&cluster->lock);
}

int
mc_cluster_find(mc_cluster *cluster, int slot)
{
    pthread_mutex_lock(&cluster->lock);
    int owner = cluster->owners[slot] - 1;
    pthread_mutex_unlock(&cluster->lock);
    return owner;
}

mc_cluster_node
mc_cluster_node_of(mc_cluster *cluster, int number)
{
    pthread_mutex_lock(&cluster->lock);
    mc_cluster_node node = cluster->nodes[number];
    pthread_mutex_unlock(&cluster->lock);
    return node;
}

/* The place of a server that has no slots any more: a cluster that lives long names many. -1: there is none. With the
 * lock held. */
static int
find_unused_place(mc_cluster *cluster)
{
    bool used[MC_CLUSTER_NODES_MAX + 1] = { false };
    for (int i = 0; i < MC_CLUSTER_SLOTS; i++)
        used[cluster->owners[i]] = true;
    for (int i = 0; i < MC_CLUSTER_NODES_MAX; i++) {
        int place = cluster->next_place++ % MC_CLUSTER_NODES_MAX;
        cluster->next_place %= MC_CLUSTER_NODES_MAX;
        if (!used[place + 1])
            return place;
    }
    return -1;
}

/* With the lock held. */
static int
add_cluster_node(mc_cluster *cluster, const mc_cluster_node *node)
{
    for (int i = 0; i < cluster->node_count; i++)
        if (cluster->nodes[i].port == node->port && strcmp(cluster->nodes[i].host, node->host) == 0)
            return i;
    bool full = cluster->node_count == MC_CLUSTER_NODES_MAX;
    int place = full ? find_unused_place(cluster) : cluster->node_count++;
    if (place >= 0)
        cluster->nodes[place] = *node;
    return place;
}

int
mc_cluster_add(mc_cluster *cluster, const mc_cluster_node *node)
{
    pthread_mutex_lock(&cluster->lock);
    int number = add_cluster_node(cluster, node);
    pthread_mutex_unlock(&cluster->lock);
    return number;
}

void
mc_cluster_learn(mc_cluster *cluster, int slot, int number)
{
    pthread_mutex_lock(&cluster->lock);
    cluster->known = true;
    cluster->owners[slot] = (short)(number + 1);
    pthread_mutex_unlock(&cluster->lock);
}

void
mc_cluster_forget(mc_cluster *cluster, int number)
{
    pthread_mutex_lock(&cluster->lock);
    for (int i = 0; i < MC_CLUSTER_SLOTS; i++)
        if (cluster->owners[i] == number + 1)
            cluster->owners[i] = 0;
    pthread_mutex_unlock(&cluster->lock);
}

bool
mc_cluster_redirection(int *slot, mc_cluster_node *node, const char *text)
{
    char *end;
    const char *at = strchr(text, ' ');
    if (at == NULL)
        return false;
    long number = strtol(at + 1, &end, 10);
    const char *colon = strrchr(text, ':'); /* an address of IPv6 has others before it */
    if (number < 0 || number >= MC_CLUSTER_SLOTS || end == at + 1 || *end != ' ' || colon == NULL || colon <= end)
        return false;
    size_t size = (size_t)(colon - end - 1);
    char *behind;
    long port = strtol(colon + 1, &behind, 10);
    if (size >= sizeof(node->host) || behind == colon + 1 || *behind != '\0' || port < 1 || port > 65535)
        return false;
    *slot = (int)number;
    memcpy(node->host, end + 1, size);
    node->host[size] = '\0';
    node->port = (int)port;
    return true;
}

bool
mc_cluster_wants_slots(mc_cluster *cluster)
{
    apr_time_t now = mc_clock_now();
    pthread_mutex_lock(&cluster->lock);
    bool wants = cluster->asked == 0 || now - cluster->asked >= REFRESH_PAUSE;
    if (wants)
        cluster->asked = now;
    pthread_mutex_unlock(&cluster->lock);
    return wants;
}

static mc_error *
read_slot_number(int *number, int most, mc_stream *stream, int *budget)
{
    mc_resp answer;
    --*budget;
    MC_TRY(mc_resp_read(&answer, stream, MC_CLUSTER_HOST_MAX - 1));
    if (answer.kind != MC_RESP_INTEGER || answer.number < 0 || answer.number > most)
        return mc_stream_nonsense(stream, "slots of a cluster");
    *number = (int)answer.number;
    return MC_OK;
}

/* A list of host, port, and more that is of no interest. */
static mc_error *
read_slot_node(mc_cluster_node *node, const mc_cluster_node *self, mc_stream *stream, int *budget)
{
    mc_resp list, host;
    *budget -= 2;
    MC_TRY(mc_resp_read(&list, stream, 0));
    if (list.kind != MC_RESP_ARRAY || list.number < 2)
        return mc_stream_nonsense(stream, "servers of a cluster");
    MC_TRY(mc_resp_read(&host, stream, MC_CLUSTER_HOST_MAX - 1));
    if (host.kind != MC_RESP_VALUE && host.kind != MC_RESP_NIL)
        return mc_stream_nonsense(stream, "servers of a cluster");
    MC_TRY(read_slot_number(&node->port, 65535, stream, budget));
    size_t size = host.kind == MC_RESP_VALUE ? host.value->size : 0;
    if (size > 0)
        memcpy(node->host, host.value->data, size);
    node->host[size] = '\0';
    if (size == 0 || strcmp(node->host, "?") == 0)
        memcpy(node->host, self->host, sizeof(node->host));
    return mc_resp_skip(stream, list.number - 2, budget);
}

/* First slot, last slot, the server that has them, and its copies. */
static mc_error *
read_slot_range(mc_cluster *cluster, const mc_cluster_node *self, mc_stream *stream, int *budget)
{
    mc_resp list;
    mc_cluster_node node;
    int first, last;
    --*budget;
    MC_TRY(mc_resp_read(&list, stream, 0));
    if (list.kind != MC_RESP_ARRAY || list.number < 3)
        return mc_stream_nonsense(stream, "slots of a cluster");
    MC_TRY(read_slot_number(&first, MC_CLUSTER_SLOTS - 1, stream, budget));
    MC_TRY(read_slot_number(&last, MC_CLUSTER_SLOTS - 1, stream, budget));
    MC_TRY(read_slot_node(&node, self, stream, budget));
    MC_TRY(mc_resp_skip(stream, list.number - 3, budget));
    pthread_mutex_lock(&cluster->lock);
    int number = node.port == 0 ? -1 : add_cluster_node(cluster, &node);
    for (int i = first; i <= last && number >= 0; i++)
        cluster->owners[i] = (short)(number + 1);
    pthread_mutex_unlock(&cluster->lock);
    return MC_OK;
}

static mc_error *
read_slot_ranges(mc_cluster *cluster, const mc_cluster_node *self, const mc_resp *list, mc_stream *stream)
{
    int budget = 200000; /* of answers in answers: each slot its own range would need 16384 times ten */
    if (list->kind != MC_RESP_ARRAY || list->number > MC_CLUSTER_SLOTS)
        return mc_stream_nonsense(stream, "slots of a cluster");
    for (int64_t i = 0; i < list->number; i++) {
        if (budget <= 0)
            return mc_stream_nonsense(stream, "slots of a cluster");
        MC_TRY(read_slot_range(cluster, self, stream, &budget));
    }
    return MC_OK;
}

mc_error *
mc_cluster_read_slots(mc_cluster *cluster, const mc_cluster_node *self, mc_stream *stream)
{
    mc_resp list;
    MC_TRY(mc_resp_read(&list, stream, 0));
    if (list.kind == MC_RESP_ERROR)
        return MC_OK; /* not for us to know: each key tells its own place */
    return read_slot_ranges(cluster, self, &list, stream);
}

mc_error *
mc_cluster_read_all(mc_cluster *cluster, const mc_cluster_node *self, mc_resp *answer, mc_stream *stream)
{
    MC_TRY(mc_resp_read(answer, stream, 0));
    if (answer->kind == MC_RESP_ERROR)
        return MC_OK;
    pthread_mutex_lock(&cluster->lock);
    cluster->known = true;
    memset(cluster->owners, 0, sizeof(cluster->owners));
    pthread_mutex_unlock(&cluster->lock);
    return read_slot_ranges(cluster, self, answer, stream);
}
