/* Median regression from arrays, with progress: cc train-arrays.c $(pkg-config --cflags --libs hfsad) -o train-arrays */
#include <hfsad/hfsad.h>
#include <stdio.h>

enum { ROWS = 600, F = 3 };
static double x[ROWS][F], y[ROWS];
static int64_t client[ROWS];

static bool show(void *context, const hfsad_progress *p)
{
    if (!p->polish && p->figures->iteration % 50 == 0)
        printf("iteration %3d: %s %.4f\n", (int)p->figures->iteration, (char *)context, p->figures->objective);
    return true; /* false would end the training here */
}

int main(void)
{
    static const char settings[] = "loss: {kind: absolute}\nrun: {iterations: 150, polish: true}\n";
    static const char *const clients[] = {"north/a", "north/b", "south/c"};
    for (int i = 0; i < ROWS; client[i] = i % 3, i++) { /* y = x1 + 2 x2 + 3 x3, every tenth one far off */
        for (int m = 0; m < F; m++)
            y[i] += (m + 1) * (x[i][m] = (i * (7 + 4 * m) % 31 - 15) / 10.0);
        y[i] += i % 10 ? 0 : 50;
    }
    hfsad_error err;
    hfsad_spec *spec = NULL;
    hfsad_data *data = NULL;
    hfsad_run *run = NULL;
    hfsad_result *result = NULL;
    if (hfsad_spec_parse(&spec, settings, sizeof settings - 1, &err) ||
        hfsad_data_create(&data, ROWS, F, HFSAD_BORROW, &err) || hfsad_data_dense(data, x[0], F, 1, &err) ||
        hfsad_data_y(data, y, 1, &err) || hfsad_data_codes(data, client, clients, 3, &err) ||
        hfsad_run_create_on(&run, spec, data, 0, &err) || hfsad_run_train(run, show, "objective", &result, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    const double *w = hfsad_result_models(result); /* of the cloud, then of all other nodes */
    printf("model: %.4f %.4f %.4f\n", w[0], w[1], w[2]);
    return hfsad_result_free(result), hfsad_run_free(run), hfsad_data_free(data), hfsad_spec_free(spec), 0;
}
