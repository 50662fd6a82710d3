/* What the table of a run says of its settings: priors, links, those that differ from their defaults, and those that
 * this run does not use. */
#ifndef HFSAD_OUT_SETTINGS_ROWS_H
#define HFSAD_OUT_SETTINGS_ROWS_H

#include "run/handle.h"
#include "spec/table.h"

#include <stdio.h>

/* Texts of a row each, to be freed; "" if there is nothing to say, NULL: no memory. */
char *priors_text(const hfsad_run *run);
char *links_text(const hfsad_run *run);
char *features_text(const hfsad_run *run, const hfsad_spec *spec);
/* Columns of text that the spec does not name. */
char *categories_text(const hfsad_run *run, const hfsad_spec *spec);
char *constants_text(const hfsad_run *run);
char *changed_text(const hfsad_run *run, const hfsad_spec *spec);
char *idle_text(const hfsad_run *run, const hfsad_spec *spec);

#endif
