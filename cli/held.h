/* Holds back the output of a process until it is known whether another process prints the same. */
#ifndef HFSAD_CLI_HELD_H
#define HFSAD_CLI_HELD_H

/* From now on, stdout is discarded and stderr is held back. */
void held_begin(void);
/* Prints the held-back stderr. */
void held_say(void);

#endif
