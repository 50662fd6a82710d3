/* Ranks that read different inputs would train on nonsense: found before any of them begins. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/ranks.h"
#include "run/save.h"
#include "spec/pack.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    hfsad_status status;
    uint64_t data, truth;
} rank_inputs;

static bool nothing_passes(const char *key)
{
    (void)key;
    return false;
}

/* own, first: the prints of this rank's spec and of rank 0's. */
static hfsad_status compare(const rank_inputs *mine, const rank_inputs *lead, const double *own, const double *first,
                            hfsad_error *err)
{
    char keys[200] = "";
    const unsigned rank = ranks()->rank;
    if (mine->status || lead->status)
        return mine->status;
    if (spec_prints_differ(first, own, keys, sizeof keys))
        return error_set(err, HFSAD_ERROR_INPUT, "rank %u has another spec than rank 0 (%s); give all ranks the same",
                         rank, keys);
    if (lead->data != mine->data || lead->truth != mine->truth)
        return error_set(err, HFSAD_ERROR_INPUT, "rank %u reads other %s than rank 0; give all ranks the same files",
                         rank, lead->data != mine->data ? "data" : "truth");
    return HFSAD_OK;
}

hfsad_status ranks_compare(hfsad_run *r, const hfsad_spec *spec, hfsad_status status, hfsad_error *err)
{
    const rank_group *group = ranks();
    if (group->count == 1)
        return status;
    const size_t prints = spec_prints_count();
    double *own = alloc_zero(2 * prints, sizeof *own), *first = own + prints;
    if (!own)
        group->end(group->context, 1);
    if (!status)
        run_take_prints(r);
    const rank_inputs mine = {status, r->data_print, r->truth_print};
    rank_inputs lead = mine;
    spec_prints(spec, nothing_passes, own);
    memcpy(first, own, prints * sizeof *own);
    group->share(group->context, 0, &lead, sizeof lead);
    group->share(group->context, 0, first, prints * sizeof *first);
    hfsad_error said = status && err ? *err : (hfsad_error){0};
    said.status = status = compare(&mine, &lead, own, first, &said);
    free(own);
    if (err)
        *err = said;
    return ranks_agree(status, err);
}
