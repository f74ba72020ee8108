/* What redis.c and redis_scan.c share. */
#ifndef MC_REMOTE_REDIS_PRIVATE_H
#define MC_REMOTE_REDIS_PRIVATE_H

#include "remote/redis.h"
#include "remote/redis_cluster.h"

struct mc_redis {
    int count;
    mc_remote_address *seeds;
    mc_cluster *cluster;
};

#endif
