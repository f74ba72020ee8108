/*
 * How many workers may ask an origin at the same time, by how quickly it answers: fewer when it slows down or fails,
 * then one more at a time. Only arithmetic: no clock, no lock, no memory of its own.
 */
#ifndef MC_SEED_THROTTLE_H
#define MC_SEED_THROTTLE_H

#include <stdbool.h>

typedef struct mc_throttle {
    int most;      /* workers there are */
    int limit;     /* workers that may work: 1..most */
    double usual;  /* seconds that an answer takes; 0: not known yet */
    double before; /* what answers took when workers were last stopped for it; 0: all is well */
    double slow;   /* what answers took in the round before, if that was too long; else 0 */
    int settling;  /* answers that are still to come from when more workers asked */

    int answers, failures; /* of this round */
    double seconds;        /* of its answers that were no failures */
} mc_throttle;

void mc_throttle_begin(mc_throttle *throttle, int most);

/*
 * One metatile's time at the origin, or its failure. True when the limit has changed.
 *
 * Answers are judged by rounds of as many as workers may work, and at least four. Where more than a quarter of a round
 * failed, half of the workers stop. Where two rounds took more than three times the usual time, and 100 ms more, a
 * quarter stops; as long as that makes answers quicker, and they are still slow, another quarter does. Where it does
 * not, the origin has dearer maps to draw or others to serve, and what it takes is usual from now on. Otherwise one
 * worker goes on again. What is usual follows shorter times quickly and longer ones slowly.
 */
bool mc_throttle_take(mc_throttle *throttle, double seconds, bool failed);

#endif
