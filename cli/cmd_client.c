/* hfsad client: a client of a federation, or all those of an edge in one process. */
#include "member.h"

#include <stdio.h>
#include <stdlib.h>

int cmd_client(int argc, char **argv)
{
    member_arguments a = {.sets.room = calloc((size_t)argc + 1, sizeof(char *)), .level = LOG_INFO};
    int status = CLI_FAILED;
    if (a.sets.room)
        status = member_parse(&a, ROLE_CLIENT, argc, argv);
    else
        fputs("hfsad: not enough memory\n", stderr);
    if (status == CLI_GO)
        status = member_run(&a, ROLE_CLIENT, NULL);
    free(a.sets.room);
    return status;
}
