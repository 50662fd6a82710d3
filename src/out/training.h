/* What a run trained by a program keeps besides its state: its trace, its last figures and why it stopped. */
#ifndef HFSAD_OUT_TRAINING_H
#define HFSAD_OUT_TRAINING_H

#include "out/report.h"

typedef struct {
    report *report;
    train_end end; /* RUNNING until a training has ended */
    bool measured; /* end.figures are those of the last measurement */
} training_record;

/* Creates the record if it is missing. */
hfsad_status training_record_of(hfsad_run *run, training_record **record, hfsad_error *err);

#endif
