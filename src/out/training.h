/* What a run that programs train keeps beside itself: its trace, its last figures and why it stopped. */
#ifndef HFSAD_OUT_TRAINING_H
#define HFSAD_OUT_TRAINING_H

#include "out/report.h"

typedef struct {
    report *report;
    train_end end; /* RUNNING until a training has ended */
    bool measured; /* end.figures are those of the last measurement */
} training_record;

/* Made if it is missing. */
hfsad_status training_record_of(hfsad_run *run, training_record **record, hfsad_error *err);

#endif
