/* See serve_show.h. */
#include "serve_show.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/common/json_line.h"
#include "serve_words.h"
#include "service/service_base.h"
#include "text/text.h"

enum { LAYERS_SHOWN = 20, LINES_A_SECOND = 20, TEXT_SHOWN = 2000 };

/* --- what is served ----------------------------------------------------------------------------------------------- */

/* Texts of files, in which anything may stand. */
static const char *
terminal_text(const char *text, apr_pool_t *pool)
{
    return mc_message_text(text, TEXT_SHOWN, pool);
}

static void
print_layer(const mc_tileset *tileset, apr_pool_t *pool)
{
    const char *title = mc_tileset_title(tileset);
    printf("  %-24s", terminal_text(tileset->name, pool));
    for (int i = 0; i < tileset->link_count; i++) {
        const mc_grid_link *link = tileset->links[i];
        printf("%s zooms %d to %d of %s", i == 0 ? "" : ",", link->minzoom, link->maxzoom, link->grid->name);
    }
    mc_extent box = mc_tileset_degrees(tileset);
    printf(", box %.6g %.6g %.6g %.6g", box.minx, box.miny, box.maxx, box.maxy);
    if (title != NULL && strcmp(title, tileset->name) != 0)
        printf(", \"%s\"", terminal_text(title, pool));
    putchar('\n');
}

static void
print_layers(const mc_config *model, apr_pool_t *parent)
{
    apr_pool_t *scratch;
    apr_pool_create(&scratch, parent);
    for (int i = 0; i < model->tilesets->nelts && i < LAYERS_SHOWN; i++)
        print_layer(APR_ARRAY_IDX(model->tilesets, i, const mc_tileset *), scratch);
    if (model->tilesets->nelts > LAYERS_SHOWN)
        printf("  and %d more\n", model->tilesets->nelts - LAYERS_SHOWN);
    apr_pool_destroy(scratch);
}

static void
write_layers_json(mc_json_writer *json, const mc_config *model)
{
    mc_json_open_array(json, "layers");
    for (int i = 0; i < model->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(model->tilesets, i, const mc_tileset *);
        mc_extent box = mc_tileset_degrees(tileset);
        const double edges[] = { box.minx, box.miny, box.maxx, box.maxy };
        mc_json_open_object(json, NULL);
        mc_json_string(json, "name", tileset->name);
        mc_json_string(json, "title", mc_tileset_title(tileset));
        mc_json_open_array(json, "grids");
        for (int l = 0; l < tileset->link_count; l++) {
            mc_json_open_object(json, NULL);
            mc_json_string(json, "name", tileset->links[l]->grid->name);
            mc_json_integer(json, "minzoom", tileset->links[l]->minzoom);
            mc_json_integer(json, "maxzoom", tileset->links[l]->maxzoom);
            mc_json_close(json);
        }
        mc_json_close(json);
        mc_json_open_array(json, "box");
        for (int c = 0; c < 4; c++)
            mc_json_digits(json, NULL, edges[c], 12);
        mc_json_close(json);
        mc_json_close(json);
    }
    mc_json_close(json);
}

static void
end_show_line(mc_cli_json_line *line)
{
    mc_cli_json_line_end(line);
    fflush(stdout);
}

void
mc_serve_show_serving(const mc_serve_show *show, const mc_serve_things *things, const mc_serve_server *server)
{
    const char *url = mc_serve_address_url(server->address, show->pool);
    if (show->json || !show->quiet)
        mc_serve_things_ask_places(things, show->pool);
    if (show->json) {
        mc_cli_json_line line = mc_cli_json_line_begin();
        mc_json_string(line.json, "event", "serving");
        mc_json_string(line.json, "url", url);
        mc_json_integer(line.json, "port", server->address->port);
        mc_json_string(line.json, "server", mc_serve_server_name(server));
        mc_json_string(line.json, "config", things->config);
        write_layers_json(line.json, things->model);
        end_show_line(&line);
        return;
    }
    if (show->quiet)
        return;
    print_layers(things->model, show->pool);
    printf("\n  %s\n\n", url);
    if (server->address->public)
        puts("Everybody who reaches this machine can see these maps.");
    printf("Served by %s; Ctrl-C stops it.\n", mc_serve_server_name(server));
    fflush(stdout);
}

void
mc_serve_show_reloaded(const mc_serve_show *show, const mc_serve_things *things)
{
    if (show->json || !show->quiet)
        mc_serve_things_ask_places(things, show->pool);
    if (show->json) {
        mc_cli_json_line line = mc_cli_json_line_begin();
        mc_json_string(line.json, "event", "reloaded");
        write_layers_json(line.json, things->model);
        end_show_line(&line);
    } else if (!show->quiet) {
        puts("Something has changed. Served is now:");
        print_layers(things->model, show->pool);
        fflush(stdout);
    }
}

void
mc_serve_show_stopped(const mc_serve_show *show)
{
    if (show->json) {
        mc_cli_json_line line = mc_cli_json_line_begin();
        mc_json_string(line.json, "event", "stopped");
        end_show_line(&line);
    } else if (!show->quiet) {
        puts("stopped");
        fflush(stdout);
    }
}

/* --- what goes wrong ---------------------------------------------------------------------------------------------- */

static void
show_event(const mc_serve_show *show, const char *event, const char *text)
{
    if (show->json) {
        mc_cli_json_line line = mc_cli_json_line_begin();
        mc_json_string(line.json, "event", event);
        mc_json_string(line.json, "text", text);
        end_show_line(&line);
    } else {
        apr_pool_t *scratch;
        apr_pool_create(&scratch, show->pool);
        fprintf(stderr, "mapcache serve: %s\n", mc_serve_terminal_lines(text, scratch));
        apr_pool_destroy(scratch);
    }
}

void
mc_serve_show_note(const mc_serve_show *show, const char *text)
{
    if (!show->quiet)
        show_event(show, "note", text);
}

void
mc_serve_show_failure(const mc_serve_show *show, const char *text)
{
    show_event(show, "error", text);
}

static void
show_repeated(mc_serve_show *show)
{
    char text[100];
    if (show->repeated > 0) {
        snprintf(text, sizeof(text), "(the same %d times more)", show->repeated);
        show_event(show, "error", text);
    }
    show->repeated = 0;
}

void
mc_serve_show_counted(mc_serve_show *show)
{
    char text[100];
    if (mc_clock_now() < show->second + APR_USEC_PER_SEC)
        return;
    show_repeated(show);
    if (show->left_out > 0) {
        snprintf(text, sizeof(text), "(%d more lines in a second)", show->left_out);
        show_event(show, "error", text);
    }
    show->burst = show->left_out = 0;
    show->second = mc_clock_now();
}

/* The server reads the configuration, too, and complains of the same. */
static bool
is_told(const mc_serve_show *show, const char *words)
{
    const apr_array_header_t *told = show->things->told;
    for (int i = 0; told != NULL && i < told->nelts; i++)
        if (strstr(words, APR_ARRAY_IDX(told, i, const char *)) != NULL)
            return true;
    return false;
}

void
mc_serve_show_lost(mc_serve_show *show, int lines)
{
    show->left_out += lines;
}

void
mc_serve_show_log(mc_serve_show *show, const char *line)
{
    apr_pool_t *scratch;
    apr_pool_create(&scratch, show->pool);
    const char *words = mc_serve_log_words(line, scratch);
    mc_serve_show_counted(show);
    if (words == NULL || is_told(show, words)) {
        apr_pool_destroy(scratch);
        return;
    }
    if (strncmp(show->last, words, sizeof(show->last) - 1) == 0) {
        show->repeated++;
    } else if (show->burst++ >= LINES_A_SECOND) {
        show->left_out++;
    } else {
        show_repeated(show);
        show_event(show, "error", words);
        apr_cpystrn(show->last, words, sizeof(show->last));
    }
    apr_pool_destroy(scratch);
}
