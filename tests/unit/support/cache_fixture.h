/* What the tests of caches share: a folder of their own, a grid, and caches from a line of configuration. */
#ifndef MC_CACHE_FIXTURE_H
#define MC_CACHE_FIXTURE_H

#include "config_text.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/metrics.h"
#include "cache/cache_base.h"
#include "text/text.h"

extern char cache_folder[64];
extern mc_level cache_levels[];
extern mc_grid cache_grid;

mc_cache *cache_of(const char *xml);
/* A cache of two children: an sqlite one named a, a disk one in the folder lb named b; and a child of the last one. */
mc_cache *cache_of_two(const char *xml);
mc_cache *child_named(const char *name);
mc_severity cache_complaint_of(const char *xml);

/* A folder, open files and memory; for a test that has been set up, and before it ends. */
void start_cache_test(void);
void end_cache_test(void);

/* The same anew in the middle of a test: the folder is empty, nothing is open, nothing remembered. */
void restart_cache_test(void);

/* Runs a suite with that, and with counters, before and after each test. */
int cache_run(const char *name, const TTest *const *tests, int count);

#define CACHE_MAIN(name, ...)                                                                                          \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *const tests[] = { __VA_ARGS__ };                                                                  \
        return cache_run(name, tests, (int)(sizeof(tests) / sizeof(tests[0])));                                        \
    }

mc_tile_key key_at(int z, int x, int y);

/* What stands before all texts of put_text, expect_text and conform_cache, for kinds that look at tiles; "". */
extern const char *cache_text_before;
mc_buf *buf_of_text(const char *text);
void put_text(mc_cache *cache, const mc_tile_key *key, const char *text);

/* A tile of one colour, premultiplied, whose bytes are "picture". */
void put_colour(mc_cache *cache, const mc_tile_key *key, const uint8_t bgra[4]);
void expect_text(mc_cache *cache, const mc_tile_key *key, const char *text);
int count_open_files(void);
void run_shell(const char *format);

/* What a list has told: how often each tile of 128 x 128. It is enough at `most`. */
typedef struct seen_tiles {
    int count, most;
    unsigned char places[128][128];
} seen_tiles;

bool see_tile(void *baton, int x, int y);

/* What every back end does. */
void conform_cache(mc_cache *cache);

#endif
