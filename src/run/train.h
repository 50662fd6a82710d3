/* Training from where a run stands to its end: iterations, stop rule, rows of the trace, polish. What happens beside
 * it, such as writing and printing, is in the hooks. */
#ifndef HFSAD_RUN_TRAIN_H
#define HFSAD_RUN_TRAIN_H

#include "run/handle.h"

typedef enum {
#define STOP_ENUM(name, text) STOP_##name,
    HFSAD_STOP_LIST(STOP_ENUM)
#undef STOP_ENUM
} stop_reason;

static inline const char *stop_reason_name(stop_reason reason)
{
    return hfsad_stop_name((hfsad_stop)reason);
}

typedef enum {
    TRAIN_FRESH,
    TRAIN_RESUMED,  /* the trace has the rows up to here */
    TRAIN_REPLAYED, /* a record was played: there are no iterations left */
} train_origin;

/* Every hook may be NULL. */
typedef struct {
    void *context;
    /* Asked after every iteration: whether to stop here. */
    bool (*cancelled)(void *context);
    /* Asked after an iteration that is not the last: whether `visit` wants figures. */
    bool (*due)(void *context);
    void (*row)(void *context, const hfsad_figures *row);
    /* The row of the start is there; a failure ends the training. */
    hfsad_status (*begun)(void *context, const hfsad_figures *figures, hfsad_error *err);
    /* After an iteration behind which the training goes on, and the last. due: figures are of this iteration because
     * `due` asked for them. */
    void (*visit)(void *context, uint64_t iteration, const hfsad_figures *figures, bool due);
    /* Before the polish; a failure ends the training. */
    hfsad_status (*trained)(void *context, const hfsad_figures *figures, stop_reason stopped, hfsad_error *err);
    /* Before every exchange of the polish; false: give it up. */
    bool (*polishing)(void *context, const hfsad_polish *so_far);
    /* After the polish, whatever came of it. */
    void (*polished)(void *context);
} train_hooks;

typedef struct {
    train_origin origin;
    bool tolerance_met; /* TRAIN_REPLAYED: by the record */
    const train_hooks *hooks;
} train_settings;

typedef struct {
    hfsad_figures figures; /* of the last measurement */
    stop_reason stopped;
} train_end;

/* HFSAD_ERROR_DIVERGED: *end says where; other failures are the hooks' and the polish's. */
hfsad_status run_train(hfsad_run *run, const train_settings *settings, train_end *end, hfsad_error *err);

#endif
