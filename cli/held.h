/* What a process says is held back until it is known whether another one says the same. */
#ifndef HFSAD_CLI_HELD_H
#define HFSAD_CLI_HELD_H

/* From now on nothing goes to stdout, and stderr waits. */
void held_begin(void);
/* Says what has come to stderr. */
void held_say(void);

#endif
