/* What `hfsad cloud`, `edge` and `client` have in common: options, log and the loop around hfsad_member_run. */
#ifndef HFSAD_CLI_CMD_MEMBER_H
#define HFSAD_CLI_CMD_MEMBER_H

#include "cli.h"
#include "hfsad/net.h"

/* Words of the options, ended by NULL: of hfsad_log_level, and of --log. */
extern const char *const member_levels[], *const member_forms[];

/* --log and --log-level. */
typedef struct {
    int form, level;
} log_options;

/* Prints one line on stderr. */
void member_print(const log_options *o, const hfsad_log *line);

/* Loads the spec with its --set settings; CLI_GO or an exit status. */
int member_load(hfsad_spec **spec, const char *path, const cli_texts *sets, const char *command);

/* Runs the whole command. */
int member_command(hfsad_role role, int argc, char **argv);

#endif
