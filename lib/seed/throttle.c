/* Additive increase, multiplicative decrease (Chiu and Jain, 1989), driven by how long answers take. */
#include "seed/throttle.h"

static const double SLOW = 3, SLOW_BY = 0.1, FAILING = 0.25, NO_BETTER = 0.9, STEADY = 1.15, USUAL_SHARE = 1.0 / 32;

enum { ROUND_MIN = 4 };

void
mc_throttle_begin(mc_throttle *throttle, int most)
{
    *throttle = (mc_throttle){ .most = most, .limit = most };
}

/* What is left of `limit` workers: at least one, and fewer than before. */
static int
reduce_worker_limit(int limit, int numerator, int denominator)
{
    int left = limit * numerator / denominator;
    return left < 1 ? 1 : left;
}

static void
learn_usual_seconds(mc_throttle *t, double seconds)
{
    if (t->usual == 0)
        t->usual = seconds;
    else if (seconds < t->usual)
        t->usual = (t->usual + seconds) / 2;
    else
        t->usual += (seconds - t->usual) * USUAL_SHARE;
}

/* Queues fill up for a while before it can be told how slow an origin is. */
static void
judge_slow(mc_throttle *t, double mean)
{
    bool steady = t->slow > 0 && mean <= STEADY * t->slow;
    if (t->before > 0 && mean > NO_BETTER * t->before) {
        t->usual = mean;
        t->before = 0;
    } else if (t->before > 0 || steady) {
        t->settling = t->limit;
        t->limit = reduce_worker_limit(t->limit, 3, 4);
        t->before = mean;
    }
    t->slow = mean;
}

static void
judge_throttle_round(mc_throttle *t)
{
    int good = t->answers - t->failures;
    double mean = good == 0 ? 0 : t->seconds / good;
    bool slow = t->usual > 0 && mean > SLOW * t->usual && mean > t->usual + SLOW_BY;
    if (t->failures > t->answers * FAILING) {
        t->limit = reduce_worker_limit(t->limit, 1, 2);
    } else if (slow) {
        judge_slow(t, mean);
    } else {
        t->before = t->slow = 0;
        t->limit += t->limit < t->most;
    }
    if (good > 0 && !slow)
        learn_usual_seconds(t, mean);
    t->answers = t->failures = 0;
    t->seconds = 0;
}

bool
mc_throttle_take(mc_throttle *throttle, double seconds, bool failed)
{
    int before = throttle->limit;
    if (throttle->settling > 0 && !failed) {
        throttle->settling--;
        return false;
    }
    throttle->answers++;
    throttle->failures += failed;
    throttle->seconds += failed ? 0 : seconds;
    if (throttle->answers >= (throttle->limit > ROUND_MIN ? throttle->limit : ROUND_MIN))
        judge_throttle_round(throttle);
    return throttle->limit != before;
}
