/* hfsad: the table of commands. */
#include "describe.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const command commands[] = {
    {"run", cmd_run, "train models from a spec file"},
    {"compare", cmd_compare, "compare specs or algorithms in one table and plot"},
    {"path", cmd_path, "train over a grid of lambdas and choose one"},
    {"paper", cmd_paper, "run the paper's experiment and plot it"},
    {"generate", cmd_generate, "generate data from a known model, such as that of the paper"},
    {"runs", cmd_runs, "list the runs of the history; name, tag, delete and export them"},
    {"show", cmd_show, "print everything that the history knows of a run"},
    {"dash", cmd_dash, "serve history and live runs as pages for a browser"},
    {"predict", cmd_predict, "predict rows with the models of a run"},
    {"assign", cmd_assign, "find the groups of new clients by their rows"},
    {"evaluate", cmd_evaluate, "measure the models of a run on held-out rows"},
    {"plot", cmd_plot, "draw the models of a run, coloured by group"},
    {"up", cmd_up, "run a federation of processes on this machine; same bits as `run`"},
    {"cloud", cmd_cloud, "start the cloud of a federation"},
    {"edge", cmd_edge, "start an edge of a federation"},
    {"client", cmd_client, "start a client of a federation, or all clients of an edge"},
    {"status", cmd_status, "show which nodes are up and how far training has got"},
    {"state", cmd_state, "verify state folders, or print their content"},
    {"readmit", cmd_readmit, "replace a node whose state folder is lost, or let a client join again"},
    {"retire", cmd_retire, "let a client leave an asynchronous run"},
    {"admit", cmd_admit, "add a client to the list of an asynchronous run"},
    {"nodes", cmd_nodes, "print the list of nodes for machines without data"},
    {"privacy", cmd_privacy, "print what a budget of differential privacy buys, by simulation"},
    {"keys", cmd_keys, "create certificates for broker and nodes, and the broker's access list"},
    {"settings", cmd_settings, "print every key of a spec with default, range and meaning"},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(FILE *out)
{
    fputs("usage: hfsad COMMAND [ARGUMENTS]\n\n"
          "Trains models over a tree of nodes (client, edge, cloud) whose data stays with\n"
          "the clients; losses and penalties may be non-smooth and non-convex.\n\n"
          "commands:\n",
          out);
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-10s  %s\n", commands[i].name, commands[i].summary);
    fputs("\n"
          "  hfsad COMMAND --help   help for one command\n"
          "  hfsad help --man [COMMAND], hfsad help --completion bash|zsh   for packages\n"
          "  hfsad --version        print the version\n\n"
          "Exit status: 0 done, 1 the run failed, 2 the spec, data or arguments are wrong,\n"
          "129, 130 and 143 interrupted by SIGHUP, Ctrl-C and SIGTERM.\n",
          out);
}

static const command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (!strcmp(name, commands[i].name))
            return &commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[N_COMMANDS + 4] = {0};
    for (int i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i].name;
    names[N_COMMANDS] = "help";
    names[N_COMMANDS + 1] = "--help";
    names[N_COMMANDS + 2] = "--version";
    const char *nearest = cli_nearest(name, names);
    char shown[CLI_SHOWN_SIZE], list[200] = "";
    cli_shown(shown, name);
    if (nearest)
        return cli_wrong("", "unknown command '%s'; did you mean %s?", shown, nearest);
    for (int i = 0; i < N_COMMANDS; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    return cli_wrong("", "unknown command '%s'; known: %s", shown, list);
}

/* For packages: hfsad help --man [COMMAND], hfsad help --completion bash|zsh. */
static int help_for_packages(int argc, char **argv)
{
    const bool man = !strcmp(argv[2], "--man");
    const command *c = man && argc > 3 ? find_command(argv[3]) : NULL;
    if (man && argc > 3 && !c)
        return unknown(argv[3]);
    if (c)
        describe_command(c);
    else if (man)
        describe_program(commands, N_COMMANDS);
    else if (argc > 3 && !strcmp(argv[3], "bash"))
        describe_for_bash(commands, N_COMMANDS);
    else if (argc > 3 && !strcmp(argv[3], "zsh"))
        describe_for_zsh(commands, N_COMMANDS);
    else
        return cli_wrong("", "help --completion takes bash or zsh");
    return cli_finish_stdout(CLI_DONE);
}

static int help(const char *name)
{
    char *arguments[] = {(char *)name, (char *)"--help", NULL};
    if (!name) {
        print_usage(stdout);
        return cli_finish_stdout(CLI_DONE);
    }
    const command *c = find_command(name);
    return c ? c->run(2, arguments) : unknown(name);
}

int main(int argc, char **argv)
{
    /* A file size limit and a closed pipe then appear as write errors, which are handled. */
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    /* Each line is one write: the processes of `up` share the stream, and their lines must not mix. */
    static char line[8192];
    setvbuf(stderr, line, _IOLBF, sizeof line);
    if (argc < 2) {
        print_usage(stderr);
        return CLI_WRONG;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        return help(NULL);
    if (!strcmp(name, "help") && argc > 2 && (!strcmp(argv[2], "--man") || !strcmp(argv[2], "--completion")))
        return help_for_packages(argc, argv);
    if (!strcmp(name, "help"))
        return help(argc > 2 ? argv[2] : NULL);
    if (!strcmp(name, "--version")) {
        printf("hfsad %s\nbuilt with " HFSAD_BUILT_WITH "\n", hfsad_version());
        return cli_finish_stdout(CLI_DONE);
    }
    const command *c = find_command(name);
    return c ? c->run(argc - 1, argv + 1) : unknown(name);
}
