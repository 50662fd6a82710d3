/*
 * What rounds with noise cost. Each round of a client is rho-zCDP (zero-concentrated differential privacy, Bun and
 * Steinke 2016) with rho = sensitivity^2 / (2 variance), and the rho of rounds add up, also if later questions depend
 * on earlier answers. A total of rho implies (epsilon, delta) for every alpha > 1 with
 *
 *     delta = exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) (1 - 1/alpha)^alpha
 *
 * and the functions here take the best alpha (Canonne, Kamath and Steinke, arXiv 2004.00010).
 */
#ifndef HFSAD_PLAN_ACCOUNTANT_H
#define HFSAD_PLAN_ACCOUNTANT_H

double zcdp_delta(double rho, double epsilon);
/* The smallest epsilon that rho implies; 0 for rho = 0. */
double zcdp_epsilon(double rho, double delta);
/* The largest rho that implies (epsilon, delta). */
double zcdp_rho(double epsilon, double delta);

#endif
