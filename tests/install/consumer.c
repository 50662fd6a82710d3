/* The smallest user of the installed library: one soft threshold and the version. */
#include <hfsad/hfsad.h>
#include <stdio.h>

int main(void)
{
    const hfsad_penalty l1 = {.kind = HFSAD_PENALTY_L1, .weight = 1, .lambda = 1, .gamma = 0};
    double x = hfsad_penalty_prox(&l1, 3, 0.5, 0);
    printf("hfsad %s: prox of |x| at 3 with step 0.5 = %g\n", hfsad_version(), x);
    return x == 2.5 ? 0 : 1;
}
