/* See describe.h. When a command is asked for its help, cli_parse passes its table to these functions. */
#include "describe.h"

#include <stdio.h>
#include <string.h>

/* ---- man pages ---- */

/* Escapes what troff would read as a request, an escape or a hyphen. */
static void put_roff_text(const char *text)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        start = *text == '\n';
    }
}

static void put_page_head(const char *page, const char *summary)
{
    printf(".TH %s 1 \"\" \"hfsad %s\" \"User Commands\"\n.SH NAME\n", page, hfsad_version());
    put_roff_text(page);
    fputs(" \\- ", stdout);
    put_roff_text(summary);
    putchar('\n');
}

/* Prints lines unchanged, as in the help. */
static void put_section(const char *heading, const char *text)
{
    printf(".SH %s\n.nf\n", heading);
    put_roff_text(text);
    fputs("\n.fi\n", stdout);
}

static void put_page(const cli_syntax *s)
{
    fputs(".SH SYNOPSIS\n.nf\n", stdout);
    put_roff_text("hfsad ");
    put_roff_text(s->usage); /* its other lines begin with hfsad, or continue the line before */
    fputs("\n.fi\n", stdout);
    put_section("DESCRIPTION", s->about);
    fputs(".SH OPTIONS\n", stdout);
    for (const cli_option *o = s->options; o < s->options + s->n_options; o++) {
        fputs(".TP\n\\fB", stdout);
        char name[80];
        snprintf(name, sizeof name, "--%s", o->name);
        put_roff_text(name);
        fputs("\\fR", stdout);
        if (o->operand) {
            fputs(" \\fI", stdout);
            put_roff_text(o->operand);
            fputs("\\fR", stdout);
        }
        putchar('\n');
        put_roff_text(o->help);
        putchar('\n');
    }
    if (s->after)
        put_section("NOTES", s->after);
    fputs(".SH SEE ALSO\n\\fBhfsad\\fR(1)\n", stdout);
}

static void describe(const command *c, cli_describer how)
{
    char *arguments[] = {(char *)(uintptr_t)c->name, (char *)(uintptr_t) "--help", NULL};
    cli_describe_with(how);
    c->run(2, arguments);
    cli_describe_with(NULL);
}

void describe_command(const command *c)
{
    char page[80];
    snprintf(page, sizeof page, "hfsad-%s", c->name);
    put_page_head(page, c->summary);
    describe(c, put_page);
}

void describe_program(const command *commands, size_t count)
{
    put_page_head("hfsad", "hierarchical federated learning with non-smooth losses");
    fputs(".SH SYNOPSIS\n\\fBhfsad\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n", stdout);
    put_section("DESCRIPTION", "Trains linear models over a tree of nodes (client, edge, cloud) whose data stays with\n"
                               "the clients. Losses and penalties may be non-smooth and non-convex.");
    fputs(".SH COMMANDS\n", stdout);
    for (size_t i = 0; i < count; i++) {
        printf(".TP\n\\fBhfsad\\-%s\\fR(1)\n", commands[i].name);
        put_roff_text(commands[i].summary);
        putchar('\n');
    }
    put_section("EXIT STATUS", "0 done, 1 the run failed, 2 the spec, data or arguments are wrong,\n"
                               "129, 130 and 143 interrupted by SIGHUP, Ctrl-C and SIGTERM.");
}

/* ---- completion ---- */

static void put_option_names(const cli_syntax *s)
{
    for (const cli_option *o = s->options; o < s->options + s->n_options; o++)
        printf("--%s ", o->name);
    fputs("--help", stdout);
}

static void put_words(const char *const *words)
{
    for (const char *const *word = words; *word; word++)
        printf("%s%s", word > words ? " " : "", *word);
}

/* Words that may follow an option: a branch of bash's case. */
static void put_choices(const cli_syntax *s)
{
    for (const cli_option *o = s->options; o < s->options + s->n_options; o++) {
        if (o->kind != CLI_CHOICE)
            continue;
        printf("        %.*s:--%s) words=\"", (int)strcspn(s->usage, " "), s->usage, o->name);
        put_words(o->choices);
        puts("\" ;;");
    }
}

static void put_setting_keys(void)
{
    hfsad_setting setting = {.size = sizeof setting};
    for (size_t i = 0; hfsad_settings_at(i, &setting); i++)
        printf("%s%s=", i ? " " : "", setting.key);
}

void describe_for_bash(const command *commands, size_t count)
{
    puts("# bash completion for hfsad\n"
         "_hfsad() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} name=${COMP_WORDS[1]} words=\n"
         "    if [ \"$COMP_CWORD\" = 1 ]; then");
    fputs("        words=\"", stdout);
    for (size_t i = 0; i < count; i++)
        printf("%s ", commands[i].name);
    puts("help --help --version\"\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "        return\n"
         "    fi\n"
         "    if [ \"$before\" = --set ]; then\n"
         "        compopt -o nospace");
    fputs("        words=\"", stdout);
    put_setting_keys();
    puts("\"\n"
         "    else\n"
         "        case $name:$before in");
    for (size_t i = 0; i < count; i++)
        describe(&commands[i], put_choices);
    puts("        esac\n"
         "    fi\n"
         "    if [ -z \"$words\" ] && [[ $word == -* ]]; then\n"
         "        case $name in");
    for (size_t i = 0; i < count; i++) {
        printf("        %s) words=\"", commands[i].name);
        describe(&commands[i], put_option_names);
        puts("\" ;;");
    }
    puts("        esac\n"
         "    fi\n"
         "    if [ -n \"$words\" ]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "    else\n"
         "        compopt -o default\n"
         "        COMPREPLY=()\n"
         "    fi\n"
         "}\n"
         "complete -F _hfsad hfsad");
}

/* A text between single quotes and brackets, without characters that would end either. */
static void put_quoted(const char *text, size_t length)
{
    for (size_t i = 0; i < length && text[i]; i++)
        putchar(strchr("'[]:\\\"", text[i]) ? ' ' : text[i]);
}

static void put_zsh_options(const cli_syntax *s)
{
    for (const cli_option *o = s->options; o < s->options + s->n_options; o++) {
        printf("            '%s--%s%s[", o->kind == CLI_TEXTS ? "*" : "", o->name, o->operand ? "=" : "");
        put_quoted(o->help, strcspn(o->help, "\n;"));
        putchar(']');
        if (o->kind == CLI_CHOICE) {
            fputs(":word:(", stdout);
            put_words(o->choices);
            putchar(')');
        } else if (!strcmp(o->name, "set")) {
            fputs(":setting:compadd -S \"\" -- ", stdout);
            put_setting_keys();
        } else if (o->operand) {
            putchar(':');
            put_quoted(o->operand, strlen(o->operand));
            fputs(":_files", stdout);
        }
        puts("' \\");
    }
}

void describe_for_zsh(const command *commands, size_t count)
{
    puts("#compdef hfsad\n"
         "_hfsad() {\n"
         "    local -a commands\n"
         "    commands=(");
    for (size_t i = 0; i < count; i++) {
        printf("        '%s:", commands[i].name);
        put_quoted(commands[i].summary, strlen(commands[i].summary));
        puts("'");
    }
    puts("    )\n"
         "    if (( CURRENT == 2 )); then\n"
         "        _describe command commands\n"
         "        return\n"
         "    fi\n"
         "    local name=$words[2]\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $name in");
    for (size_t i = 0; i < count; i++) {
        printf("    %s)\n        _arguments \\\n", commands[i].name);
        describe(&commands[i], put_zsh_options);
        puts("            '--help[help]' '*:file:_files' ;;");
    }
    puts("    esac\n"
         "}\n"
         "_hfsad \"$@\"");
}
