/*
 * What the processes of a server tell its status page: the last errors, the slowest requests, and how each process
 * finds its stores, sources and servers. All of it is in the shared memory behind the counters (base/metrics.h), with a
 * fixed size: the page sees the same whichever process answers.
 *
 * Nobody waits for long here: a table that another thread or process does not let go of is left alone, and what was to
 * be written is dropped. A process that dies leaves nothing locked.
 */
#ifndef MC_TELEMETRY_MONITOR_H
#define MC_TELEMETRY_MONITOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/metrics.h"

typedef struct mc_monitor mc_monitor;

/* Bytes of mc_metrics_create_with, with those of mc_answers_size(), which come first. */
size_t mc_monitor_size(void);

/* Before any other use, by the process that has made `metrics`. */
void mc_monitor_init(mc_metrics *metrics);

/* NULL where `metrics` is NULL or has no room for it: all functions of a monitor then do nothing. */
mc_monitor *mc_monitor_of(mc_metrics *metrics);

/* Whose turn it is to use a table: of one thread of all processes. */
typedef struct mc_monitor_turn {
    pthread_mutex_t lock;
} mc_monitor_turn;

/* Milliseconds that whoever writes waits for a turn at most, while a client waits; and whoever reads for people. */
enum { MC_MONITOR_WRITER_PATIENCE = 5, MC_MONITOR_READER_PATIENCE = 250 };

/* False: another one has had the turn all the time. A turn of a process that has died is free. */
bool mc_monitor_turn_take(mc_monitor_turn *turn, int milliseconds);
void mc_monitor_turn_give(mc_monitor_turn *turn);

/* Whether a process of that number is there. */
bool mc_monitor_process_lives(int process);

/* Copies a text to `size` bytes: cut before a character of UTF-8 that has no room. NULL is an empty text. */
void mc_monitor_copy_text(char *to, size_t size, const char *text);

/* The same, cut at its begin where it is too long: of a path the end says more. */
void mc_monitor_copy_path(char *to, size_t size, const char *path);

#endif
