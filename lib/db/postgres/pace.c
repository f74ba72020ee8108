/* See pace.h. */
#include "db/postgres/pace.h"

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
typedef struct sums {
    double bytes, worth, waited;
    apr_time_t at; /* of the last answer; 0: none */
} sums;

struct mc_pace {
    pthread_mutex_t lock;     /* of the sums */
    sums sums[2];             /* by mc_packing */
    apr_interval_time_t hold; /* of what is known of packed ones */
};

static bool
is_old(const sums *s, apr_time_t now, apr_interval_time_t hold)
{
    return s->at == 0 || now < s->at || now - s->at > hold;
}

mc_pace *
mc_pace_create(void)
{
    mc_pace *pace = calloc(1, sizeof(*pace));
    MC_ASSERT(pace != NULL);
    pthread_mutex_init(&pace->lock, NULL);
    pace->hold = HOLD;
    return pace;
}

void
mc_pace_destroy(mc_pace *pace)
{
    if (pace == NULL)
        return;
    pthread_mutex_destroy(&pace->lock);
    free(pace);
}

/* Whether packed results bring so much more in the same time. With the lock held. */
static bool
packing_pays(const mc_pace *pace)
{
    const sums *plain = &pace->sums[MC_PLAIN], *packed = &pace->sums[MC_PACKED];
    return plain->at == 0 || packed->worth * plain->waited > plain->worth * packed->waited * GAIN;
}

static bool
is_near_server(const sums *s)
{
    return s->bytes >= s->waited * NEAR;
}

void
mc_pace_add(mc_pace *pace, mc_packing packing, int64_t bytes, int64_t worth, apr_interval_time_t waited, apr_time_t now)
{
    if (bytes < TELLING_BYTES)
        return;
    pthread_mutex_lock(&pace->lock);
    sums *s = &pace->sums[packing];
    if (is_old(s, now, HOLD))
        *s = (sums){ 0 };
    s->bytes = s->bytes / 2 + (double)bytes;
    s->worth = s->worth / 2 + (double)worth;
    s->waited = s->waited / 2 + (double)(waited < 1 ? 1 : waited);
    s->at = now;
    if (packing == MC_PACKED)
        pace->hold = packing_pays(pace) ? HOLD : pace->hold < LONGEST_HOLD ? pace->hold * 2 : LONGEST_HOLD;
    pthread_mutex_unlock(&pace->lock);
}

mc_packing
mc_pace_choose(mc_pace *pace, apr_time_t now)
{
    pthread_mutex_lock(&pace->lock);
    const sums *plain = &pace->sums[MC_PLAIN], *packed = &pace->sums[MC_PACKED];
    bool unknown = plain->at == 0 || (is_old(plain, now, HOLD) && (packed->at == 0 || is_near_server(packed)));
    bool pack = !unknown && !is_near_server(plain) && plain->waited >= LEAST_WAIT &&
                (is_old(packed, now, pace->hold) || packing_pays(pace));
    pthread_mutex_unlock(&pace->lock);
    return pack ? MC_PACKED : MC_PLAIN;
}
