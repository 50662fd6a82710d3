/* What the parts of `hfsad generate` share: the arguments, and writing the files. */
#ifndef HFSAD_CLI_GENERATE_H
#define HFSAD_CLI_GENERATE_H

#include "base/batch.h"
#include "made/generator_population.h"

typedef enum { KIND_PHASE_RETRIEVAL, KIND_QUANTILE, KIND_CLUSTERED, KINDS } generate_kind;
extern const char *const generate_kind_names[KINDS + 1];
extern const char *const generate_noise_names[], *const generate_task_names[], *const generate_spread_names[];

enum { WORD_SIZE = 24 };

/* An argument that was not given is NAN, -1 or NULL until the defaults are set. */
typedef struct {
    generate_kind kind;
    const char *out, *seed_text, *names;
    char edge_word[WORD_SIZE], client_word[WORD_SIZE]; /* of names */
    int64_t edges, clients, features, seed;
    bool force, quiet, tree;
    int64_t digits;
    double snr_db, keep_x, keep_w;
    int64_t rows, test_rows, nonzero;
    double rho, shift, intercepts;
    int noise;
    double df, outliers, outlier_factor, noise_scale, tau;
    bool heteroscedastic;
    int task, loss; /* loss: index into generate_loss_names */
    int64_t groups;
    double minority, distance;
    int minority_by;
} generate_arguments;

/* Losses that suit the generated data; the names are those of loss.kind. */
enum {
    LOSS_QUANTILE,
    LOSS_ABSOLUTE,
    LOSS_SQUARED,
    LOSS_HUBER,
    LOSS_LOGISTIC,
    LOSS_HINGE,
    LOSS_EXPECTILE,
    LOSS_SMOOTHED_QUANTILE,
    LOSS_POISSON
};
/* Whether <x,w> is the tau-quantile of y. */
static inline bool generate_has_level(int loss)
{
    return loss == LOSS_QUANTILE || loss == LOSS_SMOOTHED_QUANTILE;
}
extern const char *const generate_loss_names[];

population_law generate_law(const generate_arguments *a);

/* The files that the arguments ask for: first the rows, last the spec. The first generate_folders of them are
 * folders. */
enum { FILES_MOST = GROUPS_MOST + 5, FILE_NAME_SIZE = 24 };
size_t generate_file_names(const generate_arguments *a, char names[FILES_MOST][FILE_NAME_SIZE]);
size_t generate_folders(const generate_arguments *a);

/* Writes all files or none. *whole: false if interrupted; there are no files then. */
hfsad_status generate_files(const generate_arguments *a, bool *whole, hfsad_error *err);

/* Rows as a folder tree, <edge>/<client>.csv, under a hidden name until it is complete. All members 0: none. */
typedef struct {
    char *temporary, *path;
    char edge[32 + WORD_SIZE], client[32 + WORD_SIZE]; /* client whose file is open */
    whole_file file;
    bool placed;
} row_tree;

hfsad_status row_tree_begin(row_tree *t, const char *out, const char *name, hfsad_error *err);
/* The file of the row's client, valid until the next call; a client's rows come together. *fresh: the file is still
 * empty. NULL on failure. */
whole_file *row_tree_file(row_tree *t, const generated_row *row, bool *fresh, hfsad_error *err);
/* Ends the last file and renames the tree. */
hfsad_status row_tree_place(row_tree *t, hfsad_error *err);
/* Frees the tree; if it is not kept, removes its files, renamed or not. */
void row_tree_end(row_tree *t, bool keep);

/* Writes spec.yaml from the arguments alone. */
void generate_spec(whole_file *f, const generate_arguments *a);

/* printf into a file; 500 bytes at most. */
__attribute__((format(printf, 2, 3))) void generate_put(whole_file *f, const char *format, ...);

#endif
