/*
 * A custom loss: the Cauchy loss  sum over a client's rows of  weight log(1 + (y - <x,w>)^2 / 2). An outlier has little
 * influence on it. hfsad uses it only through the two functions below.
 *
 *     hfsad generate quantile --noise student --df 1 --out data
 *     cc own-loss.c $(pkg-config --cflags --libs hfsad) -lm -o own-loss
 *     ./own-loss data/data.csv data/truth.csv
 *
 * prints the relative error of the cloud's model, first with the squared loss, then with this one.
 */
#include <hfsad/hfsad.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double weight_of(const hfsad_client *client, size_t row)
{
    return client->weight ? client->weight[row] : 1;
}

static double cauchy_value(void *context, const hfsad_client *client, const double *w)
{
    (void)context;
    double sum = 0;
    for (size_t row = 0; row < client->rows; row++) {
        const double r = client->y[row] - hfsad_client_dot(client, row, w);
        sum += weight_of(client, row) * log1p(r * r / 2);
    }
    return sum;
}

static double cauchy_gradient(void *context, const hfsad_client *client, const double *w, double *g)
{
    (void)context;
    double sum = 0;
    for (size_t m = 0; m < client->M; m++)
        g[m] = 0;
    for (size_t row = 0; row < client->rows; row++) {
        const double r = client->y[row] - hfsad_client_dot(client, row, w), weight = weight_of(client, row);
        sum += weight * log1p(r * r / 2);
        hfsad_client_add(client, row, -weight * r / (1 + r * r / 2), g);
    }
    return sum;
}

/* The status of the first call that fails, its message on stderr. */
static int train(const char *data, const char *truth, const char *kind, const hfsad_own_loss *own, double *error)
{
    hfsad_error err = {0};
    hfsad_spec *spec = NULL;
    hfsad_run *run = NULL;
    const hfsad_figures *figures = NULL;
    int failed = hfsad_spec_create(&spec, &err) || hfsad_spec_set(spec, "data", data, &err) ||
                 hfsad_spec_set(spec, "truth", truth, &err) || hfsad_spec_set(spec, "loss.kind", kind, &err) ||
                 (own && hfsad_spec_own_loss(spec, own, &err)) || hfsad_spec_check(spec, &err) ||
                 hfsad_run_create(&run, spec, 0, &err);
    for (int i = 0; i < 200 && !failed; i++)
        hfsad_run_iterate(run);
    failed = failed || hfsad_run_measure(run, &figures, &err);
    if (failed)
        fprintf(stderr, "own-loss: %s\n", err.message);
    *error = failed ? 0 : figures->relative_error;
    hfsad_run_free(run);
    hfsad_spec_free(spec);
    return failed;
}

int main(int argc, char **argv)
{
    const hfsad_own_loss cauchy = {.size = sizeof cauchy, .value = cauchy_value, .gradient = cauchy_gradient};
    double squared_error, cauchy_error;
    if (argc != 3) {
        fprintf(stderr, "usage: own-loss DATA TRUTH\n");
        return 2;
    }
    if (train(argv[1], argv[2], "squared", NULL, &squared_error) ||
        train(argv[1], argv[2], "own", &cauchy, &cauchy_error))
        return 1;
    printf("relative error with the squared loss: %.2e\n", squared_error);
    printf("relative error with the Cauchy loss:  %.2e\n", cauchy_error);
    return cauchy_error < squared_error ? 0 : 1;
}
