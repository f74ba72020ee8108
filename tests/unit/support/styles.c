#include "styles.h"

mc_build style_build;

const mc_style *
style_of(const char *rules)
{
    char path[] = "/tmp/mapcache-style-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    style_build = config_build();
    fprintf(
        file,
        "<sld:StyledLayerDescriptor version='1.0.0' xmlns:sld='http://www.opengis.net/sld' "
        "xmlns:ogc='http://www.opengis.net/ogc' xmlns:gml='g' xmlns:xlink='x'><sld:NamedLayer><sld:Name>a</sld:Name>"
        "<sld:UserStyle><sld:Name>one</sld:Name><sld:FeatureTypeStyle>%s</sld:FeatureTypeStyle></sld:UserStyle>"
        "</sld:NamedLayer></sld:StyledLayerDescriptor>",
        rules);
    fclose(file);
    const mc_style *style = mc_style_read(path, NULL, NULL, &style_build);
    unlink(path);
    return style;
}

int
count_complaints(mc_severity severity)
{
    int count = 0;
    for (int i = 0; i < style_build.diagnostics->complaints->nelts; i++)
        count += APR_ARRAY_IDX(style_build.diagnostics->complaints, i, mc_complaint).severity == severity;
    return count;
}

const char *
all_complaints(void)
{
    const char *all = "";
    for (int i = 0; i < style_build.diagnostics->complaints->nelts; i++)
        all = apr_pstrcat(pool, all, APR_ARRAY_IDX(style_build.diagnostics->complaints, i, mc_complaint).text, "\n",
                          NULL);
    return all;
}
