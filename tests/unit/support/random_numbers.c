#include "random_numbers.h"

uint32_t
next_random(void)
{
    static uint32_t state = 4711;
    state = state * 1664525U + 1013904223U;
    return state >> 8;
}

double
random_between(double low, double high)
{
    return low + (high - low) * (next_random() % 10000) / 10000.0;
}

int32_t
random_whole(int32_t low, int32_t high)
{
    return low + (int32_t)(next_random() % (uint32_t)(high - low));
}
