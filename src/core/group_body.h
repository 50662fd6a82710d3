/* Links that act on the norm of a node's difference, R(d) = P(|d|), on a row; kernels_body.h includes this file. The
 * gradient is d P'(|d|)/|d|. The prox keeps the direction of v, which is optimal for every length; its length is the
 * prox of P at |v|. If smoothing makes that length positive at v = 0, every direction is optimal, and all coordinates
 * get the same value. */

/* |a - b| */
VEC_FN double group_norm(size_t M, const double *a, const double *b)
{
    vec sum = vec_zero();
    for (size_t m = 0; m < M; m += VEC_LANES) {
        const vec d = vec_sub(row_load(a, m, M), row_load(b, m, M));
        sum = vec_fma(d, d, sum);
    }
    return sqrt(vec_sum(sum));
}

/* P'(|q - z|; mu)/|q - z|; 0 for a link that acts on single coordinates. */
VEC_FN vec group_pull(const penalty_vec *p, size_t M, const double *z, const double *q, vec inv_mu)
{
    const double norm = p->group ? group_norm(M, q, z) : 0;
    return norm > 0 ? vec_div(penalty_gradient(p, vec_set(norm), inv_mu), vec_set(norm)) : vec_zero();
}

/* link_centre and link_up for both kinds of links; pull: the result of group_pull. */
VEC_FN vec row_centre(const link_step_vec *c, const penalty_vec *p, vec pull, vec z, vec q)
{
    return p->group ? vec_fma(vec_mul(pull, vec_sub(q, z)), c->inv_sigma, z) : link_centre(c, p, z, q);
}

VEC_FN vec row_up(const penalty_vec *p, vec pull, vec sigma, vec inv_mu, vec z, vec q)
{
    return p->group ? vec_sub(vec_mul(sigma, q), vec_mul(pull, vec_sub(q, z))) : link_up(p, sigma, inv_mu, z, q);
}

/* Same contract as row_link. */
static double group_link(const link_step_vec *c, const penalty_vec *p, size_t M, double *z, double *q,
                         const double *w_child, const double *w_parent)
{
    const vec pull = group_pull(p, M, z, q, c->inv_mu_before);
    vec sum = vec_zero(), change = vec_zero(), a;
    for (size_t m = 0; m < M; m += VEC_LANES) {
        const vec z_old = row_load(z, m, M), v = row_centre(c, p, pull, z_old, row_load(q, m, M));
        const vec t = link_target(c, c->relaxes, v, row_load(w_child, m, M), row_load(w_parent, m, M), z_old, &a);
        sum = vec_fma(t, t, sum);
    }
    const double norm = sqrt(vec_sum(sum));
    const double length = vec_first(penalty_prox_bent(p, vec_set(norm), c->step, c->mu, c->inv_mu));
    const vec shrink = vec_set(norm > 0 ? length / norm : 0), lift = vec_set(norm > 0 ? 0 : length / sqrt((double)M));
    for (size_t m = 0; m < M; m += VEC_LANES) {
        const vec z_old = row_load(z, m, M), q_old = row_load(q, m, M), parent = row_load(w_parent, m, M);
        const vec v = row_centre(c, p, pull, z_old, q_old);
        const vec t = link_target(c, c->relaxes, v, row_load(w_child, m, M), parent, z_old, &a);
        vec z_new, q_new;
        link_place(c, c->sweeps, a, parent, vec_fma(t, shrink, lift), &z_new, &q_new);
        const vec dz = vec_sub(z_new, z_old), dq = vec_sub(q_new, q_old);
        change = vec_add(change, row_cut(vec_fma(dz, dz, vec_mul(dq, dq)), m, M));
        row_store(z, z_new, m, M);
        row_store(q, q_new, m, M);
    }
    return vec_first(vec_mul(c->sigma, c->sigma)) * vec_sum(change);
}
