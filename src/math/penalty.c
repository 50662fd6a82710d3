/* The penalties for one number at a time, through the same code as the kernels. */
#include "math/penalty_vec.h"

const penalty_kind *const penalty_kinds[] = {
#define PENALTY_TABLE_ROW(KIND, prefix, link, prior, gamma_above) [HFSAD_PENALTY_##KIND] = &prefix##_kind,
    HFSAD_PENALTY_LIST(PENALTY_TABLE_ROW)
#undef PENALTY_TABLE_ROW
};

const double penalty_gamma_above[] = {
#define PENALTY_TABLE_GAMMA(KIND, prefix, link, prior, gamma_above) [HFSAD_PENALTY_##KIND] = gamma_above,
    HFSAD_PENALTY_LIST(PENALTY_TABLE_GAMMA)
#undef PENALTY_TABLE_GAMMA
};

const char *const penalty_names[] = {
#define PENALTY_TABLE_PRIOR(KIND, prefix, link, prior, gamma_above) [HFSAD_PENALTY_##KIND] = prior,
#define PENALTY_TABLE_LINK(KIND, prefix, link, prior, gamma_above) [HFSAD_PENALTY_##KIND] = link,
    HFSAD_PENALTY_BOTH(PENALTY_TABLE_PRIOR) HFSAD_PENALTY_PRIORS(PENALTY_TABLE_PRIOR)
        HFSAD_PENALTY_LINKS(PENALTY_TABLE_LINK)
#undef PENALTY_TABLE_PRIOR
#undef PENALTY_TABLE_LINK
};

_Static_assert(sizeof penalty_kinds / sizeof *penalty_kinds == HFSAD_PENALTY_COUNT, "a row for every penalty");

/* mu = 0 is the exact penalty: no smoothing, and 1/mu never enters. */
static double inverse(double mu)
{
    return mu > 0 ? 1 / mu : 0;
}

double hfsad_penalty_value(const hfsad_penalty *p, double t, double mu)
{
    const penalty_vec pen = penalty_vec_of(p);
    const vec a = vec_set(fabs(t));
    const vec smoothing = penalty_smoothing(&pen, a, vec_set(mu), vec_set(inverse(mu)));
    return vec_first(vec_add(penalty_exact(&pen, a), smoothing));
}

double hfsad_penalty_gradient(const hfsad_penalty *p, double t, double mu)
{
    const penalty_vec pen = penalty_vec_of(p);
    return vec_first(penalty_gradient(&pen, vec_set(t), vec_set(inverse(mu))));
}

double hfsad_penalty_prox(const hfsad_penalty *p, double v, double step, double mu)
{
    const penalty_vec pen = penalty_vec_of(p);
    if (mu <= 0)
        return vec_first(penalty_prox_exact(&pen, vec_set(v), vec_set(step)));
    if (penalty_is_linear(pen.form)) {
        const vec pull = vec_mul(vec_set(step), pen.slope);
        return vec_first(penalty_prox_linear(vec_set(v), pull, vec_div(vec_set(mu), vec_add(vec_set(mu), pull))));
    }
    return vec_first(penalty_prox_bent(&pen, vec_set(v), vec_set(step), vec_set(mu), vec_set(inverse(mu))));
}

double hfsad_penalty_slope(const hfsad_penalty *p)
{
    return penalty_shape_of(p).slope;
}

double penalty_ridge(const hfsad_penalty *p)
{
    return penalty_shape_of(p).ridge;
}

double penalty_steepest(const hfsad_penalty *p, double reach)
{
    const penalty_shape shape = penalty_shape_of(p);
    return shape.slope + (shape.ridge > 0 ? shape.ridge * reach : 0);
}
