/* The clocks, each read in one place. */
#ifndef HFSAD_BASE_CLOCK_H
#define HFSAD_BASE_CLOCK_H

#include <stdint.h>

/* Since some moment in the past; never set back. */
double clock_seconds(void);
uint64_t clock_ms(void);
/* Of a processor, that this thread has had. */
double clock_work_seconds(void);
/* Since 1970, as the machine's calendar has it: for what leaves the process, because it may be set at any time. */
uint64_t clock_wall_ms(void);

#endif
