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

/* Exit statuses. */
enum { ADOPTED = 0, NOT_WRITTEN = 1, WITH_NOTES = 2 };

typedef struct cli_adopt_options {
    const char *output;
    bool force, json, quiet;
} cli_adopt_options;

static const mc_cli_option adopt_rows[] = {
    MC_OPTION_TEXT("output", 0, "FILE", offsetof(cli_adopt_options, output),
                   "the file that is written; default: mapcache.xml; -: standard output"),
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
    if (options->json && strcmp(options->output, "-") == 0)
        return "--json and --output - both write to standard output";
    return NULL;
}

/* Who may not read one of the files may not read what was made of them: passwords, headers and addresses with keys
 * stand in both. A password is for the owner alone in any case. */
static mode_t
choose_adopted_mode(const apr_array_header_t *files, const char *text)
{
    static const char *const secrets[] = { "<pass>", "<connection>", "<headers>" };
    struct stat about;
    mode_t mask = umask(0);
    umask(mask);
    mode_t mode = 0666 & ~mask;
    for (int i = 0; i < files->nelts; i++)
        if (stat(APR_ARRAY_IDX(files, i, const char *), &about) == 0)
            mode &= about.st_mode | 0600;
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
tell_adopted_json(const mc_adopt *adopt, const char *output)
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

int
mc_command_adopt(mc_cli_call *call)
{
    const cli_adopt_options *options = call->options;
    mc_adopt *adopt = mc_adopt_create(call->pool);
    const char *made_by = "mapcache adopt";
    bool failed = false, silent = strcmp(options->output, "-") == 0;
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
    const char *text = mc_adopt_write(adopt, made_by, call->pool);
    mode_t mode = choose_adopted_mode(call->arguments, text);
    int code = silent ? fputs(text, stdout) < 0 ? EIO : 0
                      : write_adopted(options->output, text, mode, options->force, call->pool);
    if (code != 0)
        return refuse_output(options->output, code, call);
    if (options->json)
        tell_adopted_json(adopt, options->output);
    else if (!silent)
        tell_adopted(adopt, options->output);
    return failed || mc_adopt_notes(adopt)->nelts > 0 ? WITH_NOTES : ADOPTED;
}
