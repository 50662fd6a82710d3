/* The coefficients of a path over lambda in one picture; see path_picture.h. */
#include "lab/path_picture.h"

#include "base/alloc.h"
#include "base/error.h"
#include "lab/plot.h"
#include "out/path_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "age:2" for every coefficient of several classes, "age:0.9" of several levels, one after the other; NULL: no memory.
 */
static char *class_names(const dataset *d, const score_losses *s)
{
    enum { NUMBER = 24 };
    size_t size = 1, at = 0;
    const char *name = d->feature_names;
    for (size_t m = 0; m < d->rows.F; m++, name += strlen(name) + 1)
        size += d->classes * (strlen(name) + NUMBER);
    char *all = alloc_zero(size, 1);
    name = d->feature_names;
    for (size_t m = 0; all && m < d->rows.F; m++, name += strlen(name) + 1)
        for (size_t k = 0; k < d->classes; k++)
            at +=
                (size_t)snprintf(all + at, size - at, "%s:%.15g", name, s && !s->labels ? s->levels[k] : (double)k) + 1;
    return all;
}

hfsad_status path_picture_draw(const hfsad_path *made, const whole_file *png, const whole_file *svg, hfsad_error *err)
{
    const dataset *d = path_run(made->path)->data;
    const size_t M = made->M, K = d->classes ? d->classes : 1, slopes = d->rows.first ? d->rows.F * K : M;
    double *w = alloc_zero(made->count * M, sizeof *w);
    char *names =
        d->classes && d->feature_names ? class_names(d, plan_scores(path_run(made->path)->plan)) : d->feature_names;
    if (!w || (d->feature_names && !names)) {
        free(w);
        return error_memory(err, made->count * M * sizeof *w, "the plot");
    }
    memcpy(w, made->w, made->count * M * sizeof *w);
    for (size_t i = 0; d->scale && i < made->count * M; i++) /* the units that lambda acts on */
        w[i] *= i % M < slopes ? d->scale[i % M / K] : 1;
    const lambda_plot p = {made->count, M,     made->lambdas,   w, made->lambdas[made->chosen],
                           M - slopes,  names, d->scale != NULL};
    const hfsad_status status = lambda_plot_draw(&p, png, svg, err);
    if (names != d->feature_names)
        free(names);
    free(w);
    return status;
}
