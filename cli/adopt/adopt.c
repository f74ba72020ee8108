/* `mapcache adopt FILE...`: a mapcache.xml from the configurations of other servers. */
#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adopt/adopt.h"
#include "base/files.h"
#include "cli/commands.h"
#include "cli/common/help.h"
#include "cli/common/json_line.h"
#include "cli/common/style.h"
#include "compare.h"

/* Exit statuses. */
enum { ADOPTED = 0, NOT_WRITTEN = 1, WITH_NOTES = 2, NOT_ALIKE = 3 };

/* What draws layers of map files. */
typedef enum adopt_styles { STYLES_OWN, STYLES_MAPSERVER } adopt_styles;

typedef struct cli_adopt_options {
    const char *output, *compare, *report;
    adopt_styles styles;
    bool force, json, quiet;
} cli_adopt_options;

static const mc_cli_option adopt_rows[] = {
    MC_OPTION_TEXT("output", 0, "FILE", offsetof(cli_adopt_options, output),
                   "the file that is written; default: mapcache.xml; -: standard output"),
    MC_OPTION_TEXT("compare", 0, "URL", offsetof(cli_adopt_options, compare),
                   "ask the other server there, too, and report what is not the same: capabilities, tiles and maps"),
    MC_OPTION_TEXT("report", 0, "FILE", offsetof(cli_adopt_options, report),
                   "the page that --compare writes; default: mapcache-compare.html"),
    MC_OPTION_CHOICE("styles", 0, "WHICH", offsetof(cli_adopt_options, styles), "own|mapserver",
                     "of map files: own (default): layers that can be drawn alike get sources and SLD files of their "
                     "own, in a folder beside the output; mapserver: MapServer's library draws all layers, as it also "
                     "does with --output -"),
    MC_OPTION_FLAG("force", 'f', offsetof(cli_adopt_options, force), "write over a file that is there"),
    MC_OPTION_JSON(offsetof(cli_adopt_options, json), "what was written, and each note, as one object of JSON"),
    MC_OPTION_QUIET(offsetof(cli_adopt_options, quiet)),
    MC_OPTION_END,
};

static void
set_adopt_defaults(void *options, apr_pool_t *pool)
{
    (void)pool;
    ((cli_adopt_options *)options)->output = "mapcache.xml";
    ((cli_adopt_options *)options)->report = "mapcache-compare.html";
}

const mc_cli_option_table mc_adopt_option_table = { adopt_rows, sizeof(cli_adopt_options), set_adopt_defaults };

const char *
mc_check_adopt_options(mc_cli_call *call)
{
    const cli_adopt_options *options = call->options;
    if (call->arguments->nelts == 0)
        return "no FILE is named: a mapproxy.yaml, a renderd.conf, a map file or a geowebcache.xml";
    if (*options->output == '\0')
        return "--output is an empty text";
    if (options->compare != NULL && strcmp(options->output, "-") == 0)
        return "--compare needs a file, and --output - writes none";
    if (options->compare != NULL && strncasecmp(options->compare, "http://", 7) != 0 &&
        strncasecmp(options->compare, "https://", 8) != 0)
        return "--compare needs an address that begins with http:// or https://";
    for (int i = 1; options->compare != NULL && i < call->arguments->nelts; i++)
        if (mc_adopt_server_of(APR_ARRAY_IDX(call->arguments, i, const char *)) !=
            mc_adopt_server_of(APR_ARRAY_IDX(call->arguments, 0, const char *)))
            return "--compare takes files of one server at a time";
    if (options->json && strcmp(options->output, "-") == 0)
        return "--json and --output - both write to standard output";
    return NULL;
}

/* Who may not read one of the files may not read what was made of them: passwords, headers and addresses with keys
 * stand in both. A password is for the owner alone in any case. */
static mode_t
choose_adopted_mode(const mc_adopt *adopt, const char *text)
{
    static const char *const secrets[] = { "<pass>", "<connection>", "<headers>" };
    mode_t mask = umask(0);
    umask(mask);
    mode_t mode = 0666 & ~mask & ((mode_t)mc_adopt_permissions(adopt) | 0600);
    for (size_t i = 0; i < sizeof(secrets) / sizeof(*secrets); i++)
        if (strstr(text, secrets[i]) != NULL)
            mode = 0600;
    return mode;
}

/* 0, or errno. The draft lies beside the file, and gets its name when it is whole. */
static int
write_adopted(const char *name, const char *text, mode_t mode, bool force, apr_pool_t *pool)
{
    char *draft = apr_pstrcat(pool, name, ".XXXXXX", NULL);
    struct stat about;
    if (lstat(name, &about) == 0 && (!force || !S_ISREG(about.st_mode)))
        return EEXIST;
    int file = mkostemp(draft, O_CLOEXEC), code = 0;
    if (file < 0)
        return errno;
    if (!mc_files_write(file, text, strlen(text)) || fchmod(file, mode) != 0 || fsync(file) != 0)
        code = errno;
    if (close(file) != 0 && code == 0)
        code = errno;
    if (code == 0 && (force ? rename(draft, name) : link(draft, name)) != 0)
        code = errno;
    if (code != 0 || !force)
        (void)unlink(draft);
    return code;
}

static void
tell_notes(const mc_adopt *adopt)
{
    const apr_array_header_t *notes = mc_adopt_notes(adopt);
    for (int i = 0; i < notes->nelts; i++) {
        const mc_adopt_note *note = &APR_ARRAY_IDX(notes, i, mc_adopt_note);
        fprintf(stderr, "%s:%d: %s%s%s\n", note->file, note->line, mc_cli_ink_of(stderr, MC_INK_WARNING), note->text,
                mc_cli_ink_of(stderr, MC_INK_END));
    }
}

static void
put_compared_json(mc_json_writer *json, const mc_compare *compare)
{
    static const char *const groups[] = { "tiles", "maps" };
    mc_json_open_object(json, "compared");
    mc_json_integer(json, "rows", compare->rows);
    mc_json_integer(json, "rows_unlike", compare->unlike);
    for (int group = 0; group < 2; group++) {
        mc_json_open_object(json, groups[group]);
        for (int verdict = 0; verdict < MC_COMPARE_VERDICTS; verdict++)
            mc_json_integer(json, mc_compare_words((mc_compare_verdict)verdict), compare->pictures[group][verdict]);
        mc_json_close(json);
    }
    mc_json_close(json);
}

static void
tell_adopted_json(const mc_adopt *adopt, const char *output, const mc_compare *compare)
{
    const apr_array_header_t *notes = mc_adopt_notes(adopt);
    mc_adopt_counts counts = mc_adopt_counted(adopt);
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_string(line.json, "file", output);
    mc_json_integer(line.json, "tilesets", counts.tilesets);
    mc_json_integer(line.json, "caches", counts.caches);
    mc_json_integer(line.json, "sources", counts.sources);
    mc_json_integer(line.json, "grids", counts.grids);
    mc_json_open_array(line.json, "notes");
    for (int i = 0; i < notes->nelts; i++) {
        const mc_adopt_note *note = &APR_ARRAY_IDX(notes, i, mc_adopt_note);
        mc_json_open_object(line.json, NULL);
        mc_json_string(line.json, "file", note->file);
        mc_json_integer(line.json, "line", note->line);
        mc_json_string(line.json, "text", note->text);
        mc_json_close(line.json);
    }
    mc_json_close(line.json);
    if (compare != NULL)
        put_compared_json(line.json, compare);
    mc_cli_json_line_end(&line);
}

static void
tell_adopted(const mc_adopt *adopt, const char *output)
{
    mc_adopt_counts counts = mc_adopt_counted(adopt);
    int notes = mc_adopt_notes(adopt)->nelts;
    printf("%s: tilesets: %d, caches: %d, sources: %d, grids: %d; not taken over: %d\n", output, counts.tilesets,
           counts.caches, counts.sources, counts.grids, notes);
    const apr_array_header_t *commands = mc_adopt_commands(adopt);
    if (commands->nelts > 0)
        printf("To fill the caches:\n");
    for (int i = 0; i < commands->nelts; i++)
        printf("  %s\n", APR_ARRAY_IDX(commands, i, const char *));
    printf("`mapcache check %s` reads it, `mapcache serve %s` shows the maps.\n", output, output);
}

static int
refuse_output(const char *output, int code, const mc_cli_call *call)
{
    if (code == EEXIST)
        fprintf(stderr, "%s: %s is there already, and stays as it is; --force writes over a plain file\n",
                call->program, output);
    else
        fprintf(stderr, "%s: %s cannot be written: %s\n", call->program, output, strerror(code));
    return NOT_WRITTEN;
}

/* Whether there is an error, which is said. */
static bool
tell_failure(const mc_error *error, apr_pool_t *pool)
{
    if (error != MC_OK)
        fprintf(stderr, "%s%s%s\n", mc_cli_ink_of(stderr, MC_INK_ERROR), mc_error_chain(error, pool),
                mc_cli_ink_of(stderr, MC_INK_END));
    return error != MC_OK;
}

/* The page replaces a plain file of its name. */
static int
write_compare_report(const mc_compare *compare, const char *name, apr_pool_t *pool)
{
    const char *page = mc_compare_page(compare, pool);
    mode_t mask = umask(0);
    umask(mask);
    return write_adopted(name, page, 0666 & ~mask, true, pool);
}

/* Whether there is a report. */
static bool
compare_adopted(mc_compare *compare, const mc_adopt *adopt, const mc_cli_call *call)
{
    const cli_adopt_options *options = call->options;
    const mc_log log = { .level = MC_LOG_EMERG, .write = mc_log_stderr.write };
    *compare = (mc_compare){ .url = options->compare,
                             .kind = mc_adopt_server_of(APR_ARRAY_IDX(call->arguments, 0, const char *)),
                             .layers = mc_adopt_layers(adopt),
                             .log = &log };
    if (tell_failure(mc_compare_run(compare, options->output, call->pool), call->pool))
        return false;
    int code = write_compare_report(compare, options->report, call->pool);
    if (code != 0)
        fprintf(stderr, "%s: %s cannot be written: %s\n", call->program, options->report, strerror(code));
    else if (!options->json && !call->quiet)
        printf("%s: capabilities: %d of %d rows are the same; tiles: %s; maps: %s\n", options->report,
               compare->rows - compare->unlike, compare->rows, mc_compare_sum(compare, 0, call->pool),
               mc_compare_sum(compare, 1, call->pool));
    return code == 0;
}

/* "mapcache-styles" of "mapcache.xml": the folder of styles, as the configuration names it. */
static const char *
name_style_folder(const char *output, apr_pool_t *pool)
{
    const char *slash = strrchr(output, '/'), *name = slash == NULL ? output : slash + 1, *dot = strrchr(name, '.');
    size_t size = dot == NULL || dot == name ? strlen(name) : (size_t)(dot - name);
    return apr_psprintf(pool, "%.*s-styles", (int)size, name);
}

/* Writes the styles beside the output. 0, or errno with the *file that cannot be written. */
static int
write_adopted_styles(const char **file, const mc_adopt *adopt, const mc_cli_call *call)
{
    const cli_adopt_options *options = call->options;
    const apr_array_header_t *styles = mc_adopt_styles(adopt);
    const char *slash = strrchr(options->output, '/');
    const char *beside =
        slash == NULL ? "" : apr_pstrndup(call->pool, options->output, (size_t)(slash + 1 - options->output));
    const char *folder = apr_pstrcat(call->pool, beside, name_style_folder(options->output, call->pool), NULL);
    *file = folder;
    if (styles->nelts > 0 && mkdir(folder, 0777) != 0 && errno != EEXIST)
        return errno;
    for (int i = 0; i < styles->nelts; i++) {
        const mc_adopt_style *style = &APR_ARRAY_IDX(styles, i, mc_adopt_style);
        *file = apr_pstrcat(call->pool, folder, "/", style->file, NULL);
        int code =
            write_adopted(*file, style->text, choose_adopted_mode(adopt, style->text), options->force, call->pool);
        if (code != 0)
            return code;
    }
    return 0;
}

/* What is there already stays, and is compared as it stands. */
static int
write_adopted_configuration(const char **file, const mc_adopt *adopt, const char *made_by, const mc_cli_call *call)
{
    const cli_adopt_options *options = call->options;
    const char *text = mc_adopt_write(adopt, made_by, call->pool);
    struct stat about;
    *file = options->output;
    if (strcmp(options->output, "-") == 0)
        return fputs(text, stdout) < 0 ? EIO : 0;
    bool there = !options->force && lstat(options->output, &about) == 0;
    int code = there ? EEXIST : write_adopted_styles(file, adopt, call);
    if (code != 0 && !there)
        return code;
    *file = options->output;
    if (!there)
        code = write_adopted(options->output, text, choose_adopted_mode(adopt, text), options->force, call->pool);
    if (code != EEXIST || options->compare == NULL)
        return code;
    fprintf(stderr, "%s: %s is there already, and is compared as it stands; --force writes it anew\n", call->program,
            options->output);
    return 0;
}

int
mc_command_adopt(mc_cli_call *call)
{
    const cli_adopt_options *options = call->options;
    mc_adopt *adopt = mc_adopt_create(call->pool);
    mc_compare compare;
    const char *made_by = "mapcache adopt", *unwritten;
    bool failed = false, alike = true;
    if (options->styles == STYLES_OWN && strcmp(options->output, "-") != 0)
        mc_adopt_write_styles_to(adopt, name_style_folder(options->output, call->pool));
    for (int i = 0; i < call->arguments->nelts; i++) {
        const char *file = APR_ARRAY_IDX(call->arguments, i, const char *);
        made_by = apr_pstrcat(call->pool, made_by, " ", file, NULL);
        failed = tell_failure(mc_adopt_read(adopt, file), call->pool) || failed;
    }
    failed = tell_failure(mc_adopt_finish(adopt), call->pool) || failed;
    if (!call->quiet && !options->json)
        tell_notes(adopt);
    if (mc_adopt_counted(adopt).tilesets == 0) {
        fprintf(stderr, "%s: no layer could be taken over, and nothing is written\n", call->program);
        return NOT_WRITTEN;
    }
    int code = write_adopted_configuration(&unwritten, adopt, made_by, call);
    if (code != 0)
        return refuse_output(unwritten, code, call);
    if (!options->json && strcmp(options->output, "-") != 0)
        tell_adopted(adopt, options->output);
    bool compared = options->compare != NULL && compare_adopted(&compare, adopt, call);
    if (options->compare != NULL)
        alike = compared && mc_compare_agrees(&compare);
    if (options->json)
        tell_adopted_json(adopt, options->output, compared ? &compare : NULL);
    return !alike ? NOT_ALIKE : failed || mc_adopt_notes(adopt)->nelts > 0 ? WITH_NOTES : ADOPTED;
}
