/* hfsad settings: every key of a spec with default, range and meaning, as text or as docs/settings.md. */
#include "cli.h"

#include "settings_formulas.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 100, DEFAULT_WIDTH = 8, NOTE_MAX = 600 };

/* General remarks that belong to no row. Backquotes are for Markdown; plain text omits them. */
static const char *const notes[] = {
    "A spec is a YAML file. `data` and `loss.kind` are required; every other key is optional. A dot in a key is a "
    "level "
    "of the file: `run.seed` is `run: {seed: 1}`. An unknown key or value is an error that suggests the nearest known "
    "one. A word in place of a mapping is its `kind` or `penalty`: `loss: absolute`, `prior: {cloud: l1}`.",
    "`--set key=value` takes a dotted key and a YAML value, as in `--set run.seed=7` or `--set 'loss={kind: quantile, "
    "tau: 0.3}'`. It overrides the file, and a later `--set` overrides an earlier one. A mapping changes only the keys "
    "that it lists.",
    ("`auto`: the preset chooses the value from the data. A given key overrides the preset. `none`: absent. Text may "
     "be "
     "quoted, numbers may not: `truth: \"none\"` is a file with that name."),
    "The files in `data`, `truth` and `run.start` are looked up in the folder of the spec, then in the current folder.",
    "A spec has at most 1 MiB and one YAML document.",
};

static const char *const override_notes[] = {
    "`overrides` is a list. Each entry changes settings of the nodes that match its `node`: `edge2`, `edge1/client7`, "
    "or a pattern with `*`, `?` and `[...]` such as `edge1/*`. A key that an entry omits, or sets to `auto`, is "
    "inherited from the keys above; `box: none` removes an inherited box. `loss` applies to clients, `prior` to edges, "
    "`link` and `schedule` to the link from the node to its parent. `--set 'overrides=[...]'` replaces the whole list.",
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Wraps text at WIDTH and indents later lines to column. The cursor is at column already. Omits backquotes. */
static void print_wrapped(const char *text, size_t column)
{
    size_t at = column;
    bool first = true;
    while (*text) {
        const size_t length = strcspn(text, " ");
        size_t shown = 0;
        for (size_t i = 0; i < length; i++)
            shown += text[i] != '`';
        if (!first && at + 1 + shown > WIDTH) {
            printf("\n%*s", (int)column, "");
            at = column;
            first = true;
        }
        if (!first) {
            putchar(' ');
            at++;
        }
        for (size_t i = 0; i < length; i++)
            if (text[i] != '`')
                putchar(text[i]);
        at += shown;
        first = false;
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

typedef bool settings_list(size_t i, hfsad_setting *setting);

static size_t key_width(settings_list *list)
{
    hfsad_setting at = {.size = sizeof at};
    size_t width = 0;
    for (size_t i = 0; list(i, &at); i++)
        width = strlen(at.key) > width ? strlen(at.key) : width;
    return width;
}

static void print_rows(settings_list *list, const char *before_heading, size_t width)
{
    hfsad_setting at = {.size = sizeof at};
    const char *heading = NULL;
    for (size_t i = 0; list(i, &at); i++) {
        char text[NOTE_MAX];
        if (at.heading != heading)
            printf("\n%s%s\n", before_heading, at.heading);
        heading = at.heading;
        const bool limited = at.type != HFSAD_SETTING_TEXT;
        snprintf(text, sizeof text, "%s%s%s%s", at.help, limited ? " (" : "", limited ? at.range : "",
                 limited ? ")" : "");
        printf("  %-*s  %-*s  ", (int)width, at.key, DEFAULT_WIDTH, at.fallback);
        print_wrapped(text, 2 + width + 2 + DEFAULT_WIDTH + 2);
    }
}

static void print_text(void)
{
    const size_t width = key_width(hfsad_settings_at);
    printf("Keys of a spec, their defaults, meanings and ranges.\n");
    for (size_t i = 0; i < COUNT(notes); i++) {
        putchar('\n');
        print_wrapped(notes[i], 0);
    }
    print_rows(hfsad_settings_at, "", width);
    printf("\nOverrides\n");
    for (size_t i = 0; i < COUNT(override_notes); i++) {
        printf("  ");
        print_wrapped(override_notes[i], 2);
    }
    print_rows(hfsad_settings_override_at, "Overrides: ", width);
}

static void print_cell(const char *text)
{
    for (; *text; text++) {
        if (strchr("|*<", *text))
            putchar('\\');
        putchar(*text);
    }
    printf(" |");
}

static void print_tables(settings_list *list, const char *level)
{
    hfsad_setting at = {.size = sizeof at};
    const char *heading = NULL;
    for (size_t i = 0; list(i, &at); i++) {
        if (at.heading != heading)
            printf("\n%s %s\n\n| key | default | range | meaning |\n|---|---|---|---|\n", level, at.heading);
        heading = at.heading;
        printf("| `%s` | %s | ", at.key, at.fallback);
        print_cell(at.range);
        putchar(' ');
        print_cell(at.help);
        putchar('\n');
    }
}

static void print_markdown(void)
{
    printf("<!-- Written by `hfsad settings --markdown` from src/spec/settings.h; edit that. -->\n\n# Settings\n");
    for (size_t i = 0; i < COUNT(notes); i++)
        printf("\n%s\n", notes[i]);
    printf("\n%s", settings_formulas);
    print_tables(hfsad_settings_at, "##");
    printf("\n## Overrides\n");
    for (size_t i = 0; i < COUNT(override_notes); i++)
        printf("\n%s\n", override_notes[i]);
    printf("\n```yaml\noverrides:\n  - {node: edge2, prior: {penalty: mcp, lambda: 0.2, gamma: 3}}\n"
           "  - {node: edge1/*, loss: {kind: huber, delta: 2}, local_steps: 5}\n```\n");
    print_tables(hfsad_settings_override_at, "###");
}

int cmd_settings(int argc, char **argv)
{
    bool markdown = false;
    const cli_option options[] = {
        {"markdown", CLI_FLAG, &markdown, 0, 0, NULL, NULL, "print docs/settings.md"},
    };
    const cli_syntax syntax = {
        .usage = "settings [--markdown]",
        .about = "Prints every key of a spec with its default, range and meaning.",
        .options = options,
        .n_options = COUNT(options),
    };
    const int status = cli_parse(&syntax, argc, argv, NULL);
    if (status != CLI_GO)
        return status;
    if (markdown)
        print_markdown();
    else
        print_text();
    return cli_finish_stdout(CLI_DONE);
}
