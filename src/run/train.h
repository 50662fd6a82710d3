/* Training from the current state of a run to its end: iterations, stop rule, rows of the trace, polish. Hooks do
 * everything else, such as writing files and printing. */
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
    TRAIN_RESUMED,  /* the trace has the rows up to the current iteration */
    TRAIN_REPLAYED, /* a record was replayed: no iterations are left */
} train_origin;

/* Every hook may be NULL. */
typedef struct {
    void *context;
    /* Called after every iteration; true: stop. */
    bool (*cancelled)(void *context);
    /* Called after an iteration that is not the last; true: `visit` needs figures. */
    bool (*due)(void *context);
    void (*row)(void *context, const hfsad_figures *row);
    /* Called with the row of iteration 0; an error ends the training. */
    hfsad_status (*begun)(void *context, const hfsad_figures *figures, hfsad_error *err);
    /* Called after every iteration. due: the figures are of this iteration because the hook `due` asked for them. */
    void (*visit)(void *context, uint64_t iteration, const hfsad_figures *figures, bool due);
    /* Called before the polish; an error ends the training. */
    hfsad_status (*trained)(void *context, const hfsad_figures *figures, stop_reason stopped, hfsad_error *err);
    /* Called before every exchange of the polish; false: stop the polish. */
    bool (*polishing)(void *context, const hfsad_polish *so_far);
    /* Called after the polish, successful or not. */
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

/* HFSAD_ERROR_DIVERGED: *end says in which iteration; other errors come from the hooks and the polish. */
hfsad_status run_train(hfsad_run *run, const train_settings *settings, train_end *end, hfsad_error *err);

#endif
