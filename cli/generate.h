/* What the parts of `hfsad generate` share: the arguments, and writing the files. */
#ifndef HFSAD_CLI_GENERATE_H
#define HFSAD_CLI_GENERATE_H

#include "report/batch.h"
#include "sim/generator_population.h"

typedef enum { KIND_PHASE_RETRIEVAL, KIND_QUANTILE, KIND_CLUSTERED, KINDS } generate_kind;
extern const char *const generate_kind_names[KINDS + 1];
extern const char *const generate_noise_names[], *const generate_task_names[], *const generate_spread_names[];

/* What is not given is NAN, -1 or NULL until the defaults are filled in. */
typedef struct {
    generate_kind kind;
    const char *out, *seed_text;
    int64_t edges, clients, features, seed;
    bool force, quiet;
    double snr_db, keep_x, keep_w;
    int64_t rows, test_rows, nonzero;
    double rho, shift;
    int noise;
    double df, outliers, outlier_factor, noise_scale, tau;
    bool heteroscedastic;
    int task, loss; /* loss: index into generate_loss_names */
    int64_t groups;
    double minority, distance;
    int minority_by;
} generate_arguments;

/* Losses that the generated data suit; the names are those of loss.kind. */
enum { LOSS_QUANTILE, LOSS_ABSOLUTE, LOSS_SQUARED, LOSS_HUBER, LOSS_LOGISTIC, LOSS_HINGE };
extern const char *const generate_loss_names[];

population_law generate_law(const generate_arguments *a);

/* The files that the arguments ask for, data.csv first; the spec is the last. */
enum { FILES_MOST = GROUPS_MOST + 5, FILE_NAME_SIZE = 24 };
size_t generate_file_names(const generate_arguments *a, char names[FILES_MOST][FILE_NAME_SIZE]);

/* All files or none. *whole: false where interrupted, and then there are none. */
hfsad_status generate_files(const generate_arguments *a, bool *whole, hfsad_error *err);

/* spec.yaml, from the arguments alone. */
void generate_spec(whole_file *f, const generate_arguments *a);

/* printf into a file; 500 bytes at most. */
__attribute__((format(printf, 2, 3))) void generate_put(whole_file *f, const char *format, ...);

#endif
