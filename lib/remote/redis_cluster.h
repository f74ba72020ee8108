/* Which server of a cluster has a key, as far as the cluster has told. */
#ifndef MC_REMOTE_REDIS_CLUSTER_H
#define MC_REMOTE_REDIS_CLUSTER_H

#include "remote/resp.h"

enum { MC_CLUSTER_SLOTS = 16384, MC_CLUSTER_NODES_MAX = 1000, MC_CLUSTER_HOST_MAX = 256 };

/* A server as a cluster names it. */
typedef struct mc_cluster_node {
    char host[MC_CLUSTER_HOST_MAX]; /* "": the one that has said so */
    int port;
} mc_cluster_node;

typedef struct mc_cluster mc_cluster; /* for all threads */

mc_cluster *mc_cluster_create(apr_pool_t *pool);

/* The slot of a key, 0 to MC_CLUSTER_SLOTS - 1 (redis.io, "Cluster specification", "Key distribution model"). */
int mc_cluster_slot(const char *key, size_t size);

/* Whether a server has said that there is a cluster. */
bool mc_cluster_is_known(mc_cluster *cluster);
void mc_cluster_tell(mc_cluster *cluster);

/* The number of the server of a slot, or -1: it is not known. */
int mc_cluster_find(mc_cluster *cluster, int slot);
mc_cluster_node mc_cluster_node_of(mc_cluster *cluster, int number);

/* The number of a server, known from now on; -1: there are too many. A number may become another server's once its own
 * has no slots: that one says where they are. */
int mc_cluster_add(mc_cluster *cluster, const mc_cluster_node *node);
void mc_cluster_learn(mc_cluster *cluster, int slot, int number);

/* Forgets what is known of the slots of a server that has gone. */
void mc_cluster_forget(mc_cluster *cluster, int number);

/* Reads "MOVED slot host:port" or "ASK slot host:port". False: it is none. */
bool mc_cluster_redirection(int *slot, mc_cluster_node *node, const char *text);

/* Whether it is time to ask for all slots: true for one caller, and for the next one a second later. */
bool mc_cluster_wants_slots(mc_cluster *cluster);

/* Reads the answer to CLUSTER SLOTS of a server, for which `self` stands where the answer names no host. */
mc_error *mc_cluster_read_slots(mc_cluster *cluster, const mc_cluster_node *self, mc_stream *stream) MC_CHECKED;

/* The same for who needs to know: all that was known of slots is forgotten before, and *answer is what the server says
 * where it says something else, an error (MC_RESP_ERROR), as one does that is by itself. */
mc_error *mc_cluster_read_all(mc_cluster *cluster, const mc_cluster_node *self, mc_resp *answer,
                              mc_stream *stream) MC_CHECKED;

#endif
