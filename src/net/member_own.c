/* What clients of a process keep for themselves: DIR/model.csv, with the columns of the cloud's, and with `personal:
 * groups` DIR/groups.csv, the weights of each client for the groups. */
#include "net/member.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "data/features.h"
#include "data/nodes.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const hfsad_member *m;
    mixture groups; /* K 0: none */
    double *w;      /* 2 M + K: a model, in the user's units, and weights */
} own_models;

static void put_numbers(whole_file *f, const char *path, const double *v, size_t count)
{
    fputs(path, f->stream);
    for (size_t i = 0; i < count; i++)
        fprintf(f->stream, ",%.17g", v[i]);
    fputc('\n', f->stream);
}

/* The model of client i of this process, in its groups if there are some; returns its weights, or NULL for lack of
 * memory. */
static const double *take_model(const own_models *o, size_t i)
{
    const hfsad_member *m = o->m;
    const dataset *d = federation_shape(m->f);
    double *user = o->w + d->M, *p = user + d->M;
    bool known = true;
    if (o->groups.K)
        known = federation_own_model(m->f, nodes_find(d, host_path(m->h, i)) - d->n_inner, &o->groups, p, o->w);
    else
        node_model(host_node(m->h, i), o->w);
    model_to_user(d, o->w, user);
    return known ? p : NULL;
}

static void put_header(const own_models *o, whole_file *f)
{
    const dataset *d = federation_shape(o->m->f);
    fputs("node", f->stream);
    for (size_t i = 0; i < features_count(d); i++)
        fprintf(f->stream, ",w%zu", i + 1);
    fputs(d->M > features_count(d) ? ",intercept\n" : "\n", f->stream);
}

static hfsad_status write_models(const own_models *o, hfsad_error *err)
{
    const hfsad_member *m = o->m;
    const size_t M = federation_shape(m->f)->M;
    whole_file f = {0};
    hfsad_status status = whole_file_begin(&f, m->s.out, "model.csv", err);
    if (status)
        return status;
    put_header(o, &f);
    for (size_t i = 0; i < host_nodes(m->h) && !status; i++) {
        if (!take_model(o, i))
            status = error_memory(err, M * sizeof *o->w, "a model");
        put_numbers(&f, host_path(m->h, i), o->w + M, M);
    }
    if (!status)
        return whole_file_end(&f, err);
    whole_file_drop(&f);
    return status;
}

static hfsad_status write_groups(const own_models *o, hfsad_error *err)
{
    const hfsad_member *m = o->m;
    whole_file f = {0};
    hfsad_status status = whole_file_begin(&f, m->s.out, "groups.csv", err);
    if (status)
        return status;
    fputs("node,group", f.stream);
    for (size_t k = 0; k < o->groups.K; k++)
        fprintf(f.stream, ",p%zu", k + 1);
    fputc('\n', f.stream);
    for (size_t i = 0; i < host_nodes(m->h) && !status; i++) {
        char name[HFSAD_TIERS_MAX * 256 + 32];
        const double *p = take_model(o, i);
        if (!p) {
            status = error_memory(err, o->groups.K * sizeof *p, "weights");
            break;
        }
        snprintf(name, sizeof name, "%s,%zu", host_path(m->h, i), mixture_largest(p, o->groups.K) + 1);
        put_numbers(&f, name, p, o->groups.K);
    }
    if (!status)
        return whole_file_end(&f, err);
    whole_file_drop(&f);
    return status;
}

hfsad_status member_write_own(const hfsad_member *m, hfsad_error *err)
{
    const dataset *d = federation_shape(m->f);
    const plan *p = federation_plan(m->f);
    own_models o = {.m = m};
    if (!m->s.out || m->s.role != HFSAD_ROLE_CLIENT || !p)
        return HFSAD_OK;
    hfsad_status status = federation_own_groups(m->f, &o.groups, err);
    if (status)
        return status;
    if (p->star && !o.groups.K) {
        member_log(m, HFSAD_LOG_INFO, "", "has no model of its own",
                   "with algorithm star the cloud's model is that of all nodes", "");
        return HFSAD_OK;
    }
    o.w = alloc_zero(2 * d->M + MIXTURE_MOST, sizeof *o.w);
    if (!o.w)
        return error_memory(err, 2 * d->M * sizeof *o.w, "a model");
    status = folder_make(m->s.out, err);
    if (!status)
        status = write_models(&o, err);
    if (!status && o.groups.K)
        status = write_groups(&o, err);
    free(o.w);
    return status;
}
