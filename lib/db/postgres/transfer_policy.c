/* See transfer_policy.h. */
#include "db/postgres/transfer_policy.h"

#include <pthread.h>
#include <stdlib.h>

#include "mapcache/error.h"

/* Bytes of an answer from which on its time says something. */
#define TELLING_BYTES (32 * 1024)
/* Bytes a microsecond. Results that come faster are not worth the time that packing them takes the database; slower
 * ones come over a thin line, or from a database that is busy. */
#define NEAR 20.0
/* Microseconds of waiting below which there is nothing to gain. */
#define LEAST_WAIT 20000.0
/* Packing must bring this much more to be worth the database's time. */
#define GAIN 1.33
/* Microseconds after which a measurement is old; packing that has brought nothing is left alone for twice as long each
 * time, up to the second. */
#define HOLD (30 * APR_USEC_PER_SEC)
#define LONGEST_HOLD (3600 * APR_USEC_PER_SEC)

/* Sums in which each answer counts half as much as the next one. */
typedef struct transfer_policy_sums {
    double bytes, worth, waited;
    apr_time_t at; /* of the last answer; 0: none */
} transfer_policy_sums;

struct mc_transfer_policy {
    pthread_mutex_t lock;         /* of the sums */
    transfer_policy_sums sums[2]; /* by mc_packing */
    apr_interval_time_t hold;     /* of what is known of packed ones */
};

static bool
is_old(const transfer_policy_sums *s, apr_time_t now, apr_interval_time_t hold)
{
    return s->at == 0 || now < s->at || now - s->at > hold;
}

mc_transfer_policy *
mc_transfer_policy_create(void)
{
    mc_transfer_policy *policy = calloc(1, sizeof(*policy));
    MC_ASSERT(policy != NULL);
    pthread_mutex_init(&policy->lock, NULL);
    policy->hold = HOLD;
    return policy;
}

void
mc_transfer_policy_destroy(mc_transfer_policy *policy)
{
    if (policy == NULL)
        return;
    pthread_mutex_destroy(&policy->lock);
    free(policy);
}

/* Whether packed results bring so much more in the same time. With the lock held. */
static bool
packing_pays(const mc_transfer_policy *policy)
{
    const transfer_policy_sums *plain = &policy->sums[MC_PLAIN], *packed = &policy->sums[MC_PACKED];
    return plain->at == 0 || packed->worth * plain->waited > plain->worth * packed->waited * GAIN;
}

static bool
is_near_server(const transfer_policy_sums *s)
{
    return s->bytes >= s->waited * NEAR;
}

void
mc_transfer_policy_add(mc_transfer_policy *policy, mc_packing packing, int64_t bytes, int64_t worth,
                       apr_interval_time_t waited, apr_time_t now)
{
    if (bytes < TELLING_BYTES)
        return;
    pthread_mutex_lock(&policy->lock);
    transfer_policy_sums *s = &policy->sums[packing];
    if (is_old(s, now, HOLD))
        *s = (transfer_policy_sums){ 0 };
    s->bytes = s->bytes / 2 + (double)bytes;
    s->worth = s->worth / 2 + (double)worth;
    s->waited = s->waited / 2 + (double)(waited < 1 ? 1 : waited);
    s->at = now;
    if (packing == MC_PACKED)
        policy->hold = packing_pays(policy) ? HOLD : policy->hold < LONGEST_HOLD ? policy->hold * 2 : LONGEST_HOLD;
    pthread_mutex_unlock(&policy->lock);
}

mc_packing
mc_transfer_policy_choose(mc_transfer_policy *policy, apr_time_t now)
{
    pthread_mutex_lock(&policy->lock);
    const transfer_policy_sums *plain = &policy->sums[MC_PLAIN], *packed = &policy->sums[MC_PACKED];
    bool unknown = plain->at == 0 || (is_old(plain, now, HOLD) && (packed->at == 0 || is_near_server(packed)));
    bool pack = !unknown && !is_near_server(plain) && plain->waited >= LEAST_WAIT &&
                (is_old(packed, now, policy->hold) || packing_pays(policy));
    pthread_mutex_unlock(&policy->lock);
    return pack ? MC_PACKED : MC_PLAIN;
}
