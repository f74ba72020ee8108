/* Styles from text, for tests. */
#ifndef STYLES_H
#define STYLES_H

#include "unit.h"

#include <apr_strings.h>
#include <stdio.h>
#include <unistd.h>

#include "draw/sld/sld.h"

static mc_build build;

/* The style of a document whose rules are given. */
static const mc_style *
style_of(const char *rules)
{
    char path[] = "/tmp/mapcache-style-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    build = (mc_build){ .pool = pool, .diagnostics = mc_diagnostics_create(pool) };
    fprintf(
        file,
        "<sld:StyledLayerDescriptor version='1.0.0' xmlns:sld='http://www.opengis.net/sld' "
        "xmlns:ogc='http://www.opengis.net/ogc' xmlns:gml='g' xmlns:xlink='x'><sld:NamedLayer><sld:Name>a</sld:Name>"
        "<sld:UserStyle><sld:Name>one</sld:Name><sld:FeatureTypeStyle>%s</sld:FeatureTypeStyle></sld:UserStyle>"
        "</sld:NamedLayer></sld:StyledLayerDescriptor>",
        rules);
    fclose(file);
    const mc_style *style = mc_style_read(path, NULL, NULL, &build);
    unlink(path);
    return style;
}

static inline int
complaints(mc_severity severity)
{
    int count = 0;
    for (int i = 0; i < build.diagnostics->complaints->nelts; i++)
        count += APR_ARRAY_IDX(build.diagnostics->complaints, i, mc_complaint).severity == severity;
    return count;
}

/* All that was said, for messages. */
static inline const char *
said(void)
{
    const char *all = "";
    for (int i = 0; i < build.diagnostics->complaints->nelts; i++)
        all = apr_pstrcat(pool, all, APR_ARRAY_IDX(build.diagnostics->complaints, i, mc_complaint).text, "\n", NULL);
    return all;
}

#endif
