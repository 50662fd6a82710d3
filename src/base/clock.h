/* The clocks; every clock is read here only. */
#ifndef HFSAD_BASE_CLOCK_H
#define HFSAD_BASE_CLOCK_H

#include <stdint.h>

/* Seconds since an unspecified moment; never set back. */
double clock_seconds(void);
uint64_t clock_ms(void);
/* Seconds of processor time of this thread. */
double clock_work_seconds(void);
/* Seconds since 1970 by the machine's calendar, which may be set at any time: only for output. */
uint64_t clock_wall_ms(void);

#endif
