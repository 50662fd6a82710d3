/* The models that clients of a process keep for themselves: DIR/model.csv, with the columns of the cloud's. */
#include "net/member.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "data/features.h"

#include <stdio.h>
#include <stdlib.h>

static void put_row(whole_file *f, const char *path, const double *w, size_t M)
{
    fputs(path, f->stream);
    for (size_t m = 0; m < M; m++)
        fprintf(f->stream, ",%.17g", w[m]);
    fputc('\n', f->stream);
}

hfsad_status member_write_own(const hfsad_member *m, hfsad_error *err)
{
    const dataset *d = federation_shape(m->f);
    const plan *p = federation_plan(m->f);
    whole_file f = {0};
    if (!m->s.out || m->s.role != HFSAD_ROLE_CLIENT || !p)
        return HFSAD_OK;
    if (p->star) {
        member_log(m, HFSAD_LOG_INFO, "", "has no model of its own",
                   "with algorithm star the cloud's model is that of all nodes", "");
        return HFSAD_OK;
    }
    double *w = alloc_zero(2 * d->M, sizeof *w);
    if (!w)
        return error_memory(err, 2 * d->M * sizeof *w, "a model");
    hfsad_status status = folder_make(m->s.out, err);
    if (!status)
        status = whole_file_begin(&f, m->s.out, "model.csv", err);
    if (!status) {
        fputs("node", f.stream);
        for (size_t i = 0; i < features_count(d); i++)
            fprintf(f.stream, ",w%zu", i + 1);
        fputs(d->M > features_count(d) ? ",intercept\n" : "\n", f.stream);
    }
    for (size_t i = 0; i < host_nodes(m->h) && !status; i++) {
        node_model(host_node(m->h, i), w);
        model_to_user(d, w, w + d->M);
        put_row(&f, host_path(m->h, i), w + d->M, d->M);
    }
    if (!status)
        status = whole_file_end(&f, err);
    free(w);
    return status;
}
