/* Writes path.csv: a row per lambda with the cloud's model. */
#include "base/format_number.h"
#include "out/path_api.h"
#include "out/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put_real(whole_file *f, double v)
{
    char text[NUMBER_SIZE + 1] = ",";
    whole_file_put(f, text, 1 + number_write(text + 1, v));
}

static void put_point(whole_file *f, const hfsad_path *made, size_t i)
{
    const path_point *p = &made->points[i];
    char text[NUMBER_SIZE];
    whole_file_put(f, text, number_write(text, p->lambda));
    whole_file_put(f, i == made->chosen ? ",1" : ",0", 2);
    put_real(f, p->figures.objective);
    put_real(f, p->figures.consensus_objective);
    put_real(f, (double)p->nonzero);
    if (!isnan(p->heldout))
        put_real(f, p->heldout);
    if (made->folds) {
        put_real(f, made->cv_loss[i]);
        put_real(f, made->cv_error[i]);
    }
    put_real(f, p->bic);
    put_real(f, p->aic);
    if (path_run(made->path)->truth)
        put_real(f, p->figures.relative_error);
    for (size_t m = 0; m < made->M; m++)
        put_real(f, p->w[m]);
    put_real(f, p->verdict == HFSAD_VERDICT_UNKNOWN ? NAN : p->verdict == HFSAD_VERDICT_CONVERGED);
    put_real(f, p->gap_bound);
    whole_file_put(f, "\n", 1);
}

char *hfsad_path_table(const hfsad_path *made)
{
    const hfsad_run *run = path_run(made->path);
    char *text = NULL;
    size_t size;
    whole_file file = {.stream = open_memstream(&text, &size)}, *f = &file;
    if (!f->stream)
        return NULL;
    fprintf(f->stream, "lambda,chosen,objective,consensus_objective,nonzero%s%s,bic,aic%s",
            isnan(made->points[0].heldout) ? "" : ",heldout_loss", made->folds ? ",cv_loss,cv_error" : "",
            run->truth ? ",relative_error" : "");
    model_head(f, run, ",converged,gap_bound");
    for (size_t i = 0; i < made->count; i++)
        put_point(f, made, i);
    if (fclose(f->stream) == 0 && !f->reason)
        return text;
    free(text);
    return NULL;
}
