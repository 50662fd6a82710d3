/* What the files of a member share. */
#ifndef HFSAD_CLI_MEMBER_PARTS_H
#define HFSAD_CLI_MEMBER_PARTS_H

#include "member.h"

/* For host_settings (member_hear.c); context is the member. */
void member_on_event(void *context, const host_event *event);
void member_on_finish_row(void *context, const node *root, hfsad_figures *row);
bool member_on_other_run(void *context, const char *path, const char *from, const message *said);

/* member_shape; scratch: as for dataset_read_client. */
hfsad_status member_read_shape(dataset **shape, const hfsad_spec *spec, const char *scratch, hfsad_error *err);
/* The clients' rows, into the federation. */
hfsad_status member_read_rows(member *m, hfsad_error *err);

/* Where rows on the disk go. */
hfsad_status member_find_scratch(member *m, hfsad_error *err);
hfsad_status member_open_state(member *m, hfsad_error *err);
void member_close_state(member *m);
hfsad_status member_write_record(const member *m, hfsad_error *err);

#endif
