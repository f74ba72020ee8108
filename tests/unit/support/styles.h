/* Styles from text, for tests. */
#ifndef STYLES_H
#define STYLES_H

#include "config_text.h"

#include <apr_strings.h>
#include <stdio.h>
#include <unistd.h>

#include "draw/sld/sld.h"

extern mc_build style_build;

/* The style of a document whose rules are given. */
const mc_style *style_of(const char *rules);
int count_complaints(mc_severity severity);

/* All that was said, for messages. */
const char *all_complaints(void);

#endif
