/* See pace.h. */
#include "db/pace.h"

#include <pthread.h>
#include <stdlib.h>

#include "mapcache/error.h"

/* Bytes of an answer from which on its time says something. */
#define TELLING_BYTES (16 * 1024)
/* Bytes a microsecond. Plain results this fast come from near by: packing them takes longer than sending them. */
#define NEAR 100.0
/* Packed ones slower than this come over a line that plain ones would only fill. */
#define SLOW 20.0
/* Packing must bring this much more to be worth the database's time. */
#define GAIN 1.33
/* Microseconds after which a measurement is old. */
#define HOLD (30 * APR_USEC_PER_SEC)

/* Sums in which each answer counts half as much as the next one. */
typedef struct sums {
    double bytes, worth, waited;
    apr_time_t at; /* of the last answer; 0: none */
} sums;

struct mc_pace {
    pthread_mutex_t lock; /* of the sums */
    sums sums[2];         /* by mc_packing */
};

static bool
is_old(const sums *s, apr_time_t now)
{
    return s->at == 0 || now < s->at || now - s->at > HOLD;
}

mc_pace *
mc_pace_create(void)
{
    mc_pace *pace = calloc(1, sizeof(*pace));
    MC_ASSERT(pace != NULL);
    pthread_mutex_init(&pace->lock, NULL);
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

void
mc_pace_add(mc_pace *pace, mc_packing packing, int64_t bytes, int64_t worth, apr_interval_time_t waited, apr_time_t now)
{
    if (bytes < TELLING_BYTES)
        return;
    pthread_mutex_lock(&pace->lock);
    sums *s = &pace->sums[packing];
    if (is_old(s, now))
        *s = (sums){ 0 };
    s->bytes = s->bytes / 2 + (double)bytes;
    s->worth = s->worth / 2 + (double)worth;
    s->waited = s->waited / 2 + (double)(waited < 1 ? 1 : waited);
    s->at = now;
    pthread_mutex_unlock(&pace->lock);
}

static mc_packing
choose(const sums *plain, const sums *packed, apr_time_t now)
{
    if (plain->at == 0)
        return MC_PLAIN;
    if (is_old(plain, now) && (packed->at == 0 || packed->bytes >= packed->waited * SLOW))
        return MC_PLAIN;
    double rate = plain->worth / plain->waited;
    if (rate >= NEAR)
        return MC_PLAIN;
    if (is_old(packed, now))
        return MC_PACKED;
    return packed->worth / packed->waited > rate * GAIN ? MC_PACKED : MC_PLAIN;
}

mc_packing
mc_pace_choose(mc_pace *pace, apr_time_t now)
{
    pthread_mutex_lock(&pace->lock);
    mc_packing chosen = choose(&pace->sums[MC_PLAIN], &pace->sums[MC_PACKED], now);
    pthread_mutex_unlock(&pace->lock);
    return chosen;
}
