/* The step of an inner node and the value of a prior, written once over vec.h; kernels_body.h includes this file. */

/* inner_update for the coordinates from `first` to M - 1. */
VEC_FN void inner_part(const penalty_vec *own, const penalty_vec *p, const link_step_vec *c, vec pull,
                       const hfsad_link *link, size_t first, size_t M, const double *sum_u, vec scale, double *w)
{
    for (size_t m = first; m < M; m += VEC_LANES) {
        vec r = row_load(sum_u, m, M);
        if (link) /* sigma z - Lambda = sigma (z - Lambda/sigma) */
            r = vec_fma(c->sigma, row_centre(c, p, pull, row_load(link->z, m, M), row_load(link->q, m, M)), r);
        /* so that no tiny number returns to links that have already set it to 0 */
        row_store(w, link_cut(penalty_prox_exact(own, vec_mul(scale, r), scale), vec_set(LINK_TINY)), m, M);
    }
}

static void inner_update(const hfsad_penalty *prior, const hfsad_link_rule *rule, const hfsad_link *link, size_t M,
                         const double *sum_u, double sum_sigma, double *w)
{
    const penalty_vec own = penalty_vec_of(prior), none = penalty_vec_of(&no_penalty);
    const penalty_vec p = link ? penalty_vec_of(&rule->penalty) : own;
    const link_step_vec c = link ? link_step_of(&rule->schedule, &p, vec_set(link->k)) : (link_step_vec){0};
    const vec scale = vec_div(vec_set(1), link ? vec_add(c.sigma, vec_set(sum_sigma)) : vec_set(sum_sigma));
    const size_t tied = link ? M - rule->penalty.free : M, penalised = M - prior->free;
    const size_t common = tied < penalised ? tied : penalised;
    const vec pull = link ? group_pull(&p, tied, link->z, link->q, c.inv_mu_before) : vec_zero();
    inner_part(&own, &p, &c, pull, link, 0, common, sum_u, scale, w);
    if (common < M) /* the intercept has no prior; the link ties it or not */
        inner_part(penalised == M ? &own : &none, tied == M ? &p : &none, &c, pull, link, common, M, sum_u, scale, w);
}

static double prior_value(const hfsad_penalty *prior, size_t M, const double *w)
{
    const penalty_vec p = penalty_vec_of(prior);
    vec sum = vec_zero();
    M -= prior->free;
    for (size_t m = 0; m < M; m += VEC_LANES)
        sum = vec_add(sum, penalty_exact(&p, vec_abs(row_load(w, m, M)))); /* P(0) = 0 past the end */
    return vec_sum(sum);
}
