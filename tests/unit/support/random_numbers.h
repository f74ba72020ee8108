/* Numbers of a fixed sequence: the same in each run of a test. */
#ifndef RANDOM_NUMBERS_H
#define RANDOM_NUMBERS_H

#include <stdint.h>

/* 24 bits. */
uint32_t next_random(void);
double random_between(double low, double high);

/* From low to before high. */
int32_t random_whole(int32_t low, int32_t high);

#endif
