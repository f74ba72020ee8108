/* Forwarding rules: which requests another server answers, and under which address (docs/reference/services.md 4.5). */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "service/wms/wms.h"
#include "source/http_block.h"
#include "text/pattern.h"
#include "text/text.h"

typedef struct rule_settings {
    const char *name;
    bool append_pathinfo;
    apr_int64_t max_post_length;
    const mc_node *http;
    const apr_array_header_t *params;
} rule_settings;

typedef struct param_settings {
    const char *name;
    int type; /* 0: values, 1: regex */
    const apr_array_header_t *values;
    bool case_sensitive;
    const char *pattern;
} param_settings;

typedef struct rule_param {
    param_settings settings;
    const mc_pattern *pattern; /* NULL: values are compared */
} rule_param;

static const mc_key param_keys[] = {
    MC_KEY_TEXT("@name", offsetof(param_settings, name), "Query parameter that must be there.",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_CHOICE("@type", offsetof(param_settings, type), "values|regex", "How its value is compared.",
                  .flags = MC_KEY_REQUIRED),
    MC_KEY_TEXT("value", offsetof(param_settings, values), "A value that passes.", .flags = MC_KEY_REPEATABLE),
    MC_KEY_BOOL("case_sensitive", offsetof(param_settings, case_sensitive),
                "Whether values are compared with their case.", .fallback = "false"),
    MC_KEY_TEXT("regex", offsetof(param_settings, pattern), "Pattern that passes (PCRE2)."),
    MC_KEY_END,
};

static const mc_key rule_keys[] = {
    MC_KEY_TEXT("@name", offsetof(rule_settings, name), "Name of the rule."),
    MC_KEY_BOOL("append_pathinfo", offsetof(rule_settings, append_pathinfo),
                "Whether the path below the alias is appended to the url.", .fallback = "false"),
    MC_KEY_SIZE("max_post_length", offsetof(rule_settings, max_post_length),
                "Longest body of a POST that is passed on, in bytes.", .min = 1, .max = 1e9, .fallback = "10485760"),
    MC_KEY_TREE("http", offsetof(rule_settings, http), mc_http_block_keys, "Where matching requests go.",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_TREE("param", offsetof(rule_settings, params), param_keys, "A query parameter that must match.",
                .flags = MC_KEY_REPEATABLE),
    MC_KEY_END,
};

static bool
compile_pattern(rule_param *param, const mc_node *node, mc_build *build)
{
    const char *text = param->settings.pattern, *problem;
    param->pattern = mc_pattern_compile(text, &problem, build->pool);
    if (param->pattern == NULL)
        mc_complain(build->diagnostics, MC_REFUSED, node, "the regular expression \"%s\" %s", text, problem);
    return param->pattern != NULL;
}

static bool
read_param(apr_array_header_t *params, const mc_node *node, mc_build *build)
{
    rule_param *param = apr_pcalloc(build->pool, sizeof(*param));
    param_settings *settings = &param->settings;
    if (!mc_config_read(settings, node, param_keys, build->diagnostics))
        return false;
    bool regex = settings->type == 1;
    if (regex ? settings->pattern == NULL : settings->values == NULL || settings->values->nelts == 0) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "<param> \"%s\" needs a <%s>", settings->name,
                    regex ? "regex" : "value");
        return false;
    }
    if (regex && !compile_pattern(param, node, build))
        return false;
    APR_ARRAY_PUSH(params, const rule_param *) = param;
    return true;
}

static bool
read_forwarding_rule(mc_wms *wms, const mc_node *node, mc_build *build)
{
    rule_settings settings = { 0 };
    mc_forwarding_rule *rule = apr_pcalloc(build->pool, sizeof(*rule));
    if (!mc_config_read(&settings, node, rule_keys, build->diagnostics))
        return false;
    rule->http = mc_http_block_from_config(settings.http, build);
    if (rule->http == NULL)
        return false;
    apr_array_header_t *params = apr_array_make(build->pool, 4, sizeof(const rule_param *));
    for (int i = 0; settings.params != NULL && i < settings.params->nelts; i++)
        if (!read_param(params, APR_ARRAY_IDX(settings.params, i, const mc_node *), build))
            return false;
    rule->name = settings.name;
    rule->append_pathinfo = settings.append_pathinfo;
    rule->max_post_length = settings.max_post_length;
    rule->params = params;
    APR_ARRAY_PUSH(wms->rules, const mc_forwarding_rule *) = rule;
    return true;
}

bool
mc_forwarding_read(mc_wms *wms, mc_build *build)
{
    wms->rules = apr_array_make(build->pool, 2, sizeof(const mc_forwarding_rule *));
    for (int i = 0; wms->rule_nodes != NULL && i < wms->rule_nodes->nelts; i++)
        if (!read_forwarding_rule(wms, APR_ARRAY_IDX(wms->rule_nodes, i, const mc_node *), build))
            return false;
    return true;
}

static bool
param_matches(const rule_param *param, const char *text)
{
    if (param->pattern != NULL)
        return mc_pattern_matches(param->pattern, text);
    for (int i = 0; i < param->settings.values->nelts; i++) {
        const char *value = APR_ARRAY_IDX(param->settings.values, i, const mc_node *)->text;
        if ((param->settings.case_sensitive ? strcmp(value, text) : strcasecmp(value, text)) == 0)
            return true;
    }
    return false;
}

const mc_forwarding_rule *
mc_forwarding_match(const mc_wms *wms, const mc_call *call)
{
    for (int i = 0; i < wms->rules->nelts; i++) {
        const mc_forwarding_rule *rule = APR_ARRAY_IDX(wms->rules, i, const mc_forwarding_rule *);
        bool matches = true;
        for (int j = 0; matches && j < rule->params->nelts; j++) {
            const rule_param *param = APR_ARRAY_IDX(rule->params, j, const rule_param *);
            const char *text = mc_param(call, param->settings.name);
            matches = text != NULL && param_matches(param, text);
        }
        if (matches)
            return rule;
    }
    return NULL;
}

const char *
mc_forwarding_url(const mc_forwarding_rule *rule, const mc_call *call, apr_pool_t *pool)
{
    const char *url = rule->http->url;
    if (rule->append_pathinfo) {
        /* the path goes before the query of the configured address */
        size_t stem = strcspn(url, "?");
        const char *query = url + stem;
        if (stem > 0 && url[stem - 1] == '/')
            stem--;
        url = apr_pstrcat(pool, apr_pstrndup(pool, url, stem), "/",
                          mc_url_encode(call->full_path, "/", false, false, pool), query, NULL);
    }
    const apr_array_header_t *pairs = apr_table_elts(call->params);
    apr_array_header_t *parts = apr_array_make(pool, pairs->nelts + 1, sizeof(const char *));
    for (int i = 0; i < pairs->nelts; i++) {
        const apr_table_entry_t *pair = &APR_ARRAY_IDX(pairs, i, apr_table_entry_t);
        APR_ARRAY_PUSH(parts, const char *) = apr_pstrcat(pool, mc_url_encode(pair->key, "", false, true, pool), "=",
                                                          mc_url_encode(pair->val, "", false, true, pool), NULL);
    }
    if (parts->nelts == 0)
        return url;
    size_t size = strlen(url);
    const char *joint = strchr(url, '?') == NULL ? "?" : size > 0 && strchr("?&", url[size - 1]) != NULL ? "" : "&";
    return apr_pstrcat(pool, url, joint, apr_array_pstrcat(pool, parts, '&'), NULL);
}
