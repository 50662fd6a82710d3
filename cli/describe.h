/* Man pages and completions for shells, from the same tables as the help. */
#ifndef HFSAD_CLI_DESCRIBE_H
#define HFSAD_CLI_DESCRIBE_H

#include "cli.h"

typedef struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} command;

/* Prints hfsad.1 on stdout, or the page of one command. */
void describe_program(const command *commands, size_t count);
void describe_command(const command *c);
/* Prints a script for bash or zsh on stdout. */
void describe_for_bash(const command *commands, size_t count);
void describe_for_zsh(const command *commands, size_t count);

#endif
