/* The settings of a run as the history keeps them: one JSON object, a text for every dotted key. */
#ifndef HFSAD_DASH_SETTINGS_TEXT_H
#define HFSAD_DASH_SETTINGS_TEXT_H

#include "hfsad/hfsad.h"

/* All settings of a spec, or those that differ from their defaults; free with cJSON_free. */
char *settings_text(const hfsad_spec *spec, bool all);
/* The settings of `all` with the resolved values of summary.json, for commands that do not know these before the end.
 * NULL: one of the two is missing. Free with cJSON_free. */
char *settings_resolved(const char *all, const char *summary);

#endif
