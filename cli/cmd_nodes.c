/* hfsad nodes: the list of nodes that machines without data need. */
#include "cmd_member.h"

#include <stdio.h>
#include <stdlib.h>

static int print_nodes(const char *path, const cli_texts *sets)
{
    hfsad_error err = {0};
    hfsad_spec *spec = NULL;
    int status = member_load(&spec, path, sets, "nodes");
    if (status == CLI_GO) {
        char *text = NULL;
        status = hfsad_nodes_list(spec, &text, &err) ? cli_fail(&err) : CLI_DONE;
        if (status == CLI_DONE) {
            fputs(text, stdout);
            status = cli_finish_stdout(CLI_DONE);
        }
        free(text);
    }
    hfsad_spec_free(spec);
    return status;
}

int cmd_nodes(int argc, char **argv)
{
    cli_texts sets = {.room = calloc((size_t)argc + 1, sizeof(char *))};
    const char *path = NULL;
    const cli_option options[] = {
        {"set", CLI_TEXTS, &sets, 0, 0, NULL, "KEY=VALUE", "a setting"},
    };
    const cli_syntax syntax = {
        .usage = "nodes SPEC.yaml [--set KEY=VALUE]...",
        .about = "Prints the number of features and the paths of all nodes, from data or federation.nodes of the\n"
                 "spec. Machines without data need this list as federation.nodes. It can also be written by\n"
                 "hand: \"features 25\", then one client path per line.",
        .options = options,
        .n_options = 1,
        .least_words = 1,
        .most_words = 1,
        .words = "a spec file",
    };
    int status = CLI_FAILED;
    if (sets.room)
        status = cli_parse(&syntax, argc, argv, &path);
    else
        fputs("hfsad: not enough memory\n", stderr);
    if (status == CLI_GO)
        status = print_nodes(path, &sets);
    free(sets.room);
    return status;
}
