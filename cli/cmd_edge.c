/* hfsad edge: an inner node of a federation. */
#include "member.h"

#include <stdio.h>
#include <stdlib.h>

int cmd_edge(int argc, char **argv)
{
    member_arguments a = {.sets.room = calloc((size_t)argc + 1, sizeof(char *)), .level = LOG_INFO, .linger = 6};
    int status = CLI_FAILED;
    if (a.sets.room)
        status = member_parse(&a, ROLE_EDGE, argc, argv);
    else
        fputs("hfsad: not enough memory\n", stderr);
    if (status == CLI_GO)
        status = member_run(&a, ROLE_EDGE, NULL);
    free(a.sets.room);
    return status;
}
