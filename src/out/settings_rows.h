/* Rows of a run's end table about its settings: priors, links, settings that differ from their defaults, and settings
 * that this run does not use. */
#ifndef HFSAD_OUT_SETTINGS_ROWS_H
#define HFSAD_OUT_SETTINGS_ROWS_H

#include "run/handle.h"
#include "spec/table.h"

#include <stdio.h>

/* One text per row, freed by the caller; "" if there is nothing to say, NULL: no memory. */
char *priors_text(const hfsad_run *run);
char *links_text(const hfsad_run *run);
char *features_text(const hfsad_run *run, const hfsad_spec *spec);
/* Columns of text that became categories although the spec does not name them. */
char *categories_text(const hfsad_run *run, const hfsad_spec *spec);
char *constants_text(const hfsad_run *run);
char *changed_text(const hfsad_run *run, const hfsad_spec *spec);
char *idle_text(const hfsad_run *run, const hfsad_spec *spec);

#endif
