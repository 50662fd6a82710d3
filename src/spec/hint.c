/* The second half of a message: what would be right. All text comes from the table of settings. */
#include "spec/table.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_at_or_below(const char *candidate, const char *key)
{
    const size_t length = strlen(key);
    return length == 0 || (!strncmp(candidate, key, length) && (candidate[length] == '.' || !candidate[length]));
}

/* Turns "loss.kind" into "loss: {kind: value}". */
static void write_nested(const char *key, const char *value, char *text, size_t size)
{
    size_t depth = 0;
    *text = 0;
    while (true) {
        const size_t length = strcspn(key, "."), used = strlen(text);
        const bool last = !key[length];
        snprintf(text + used, size - used, "%.*s: %s", (int)length, key, last ? value : "{");
        if (last)
            break;
        key += length + 1;
        depth++;
    }
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%.*s", (int)depth, "}}}}}}}}");
}

/* skip: number of characters to leave out at the front of the key. */
static void write_example(const settings_schema *schema, const char *key, const char *given, bool dotted, size_t skip,
                          char *text, size_t size)
{
    setting_at at;
    for (size_t i = 0; settings_at(schema, i, &at); i++)
        if (is_at_or_below(at.key, key))
            break;
    char why[SETTING_WHY_MAX];
    setting_value value;
    const char *shown = given;
    if (!given || !*given || strlen(given) >= SETTING_KEY_MAX || !setting_parse(&at, given, true, &value, why)) {
        shown = at.row->fallback;
        if (!strcmp(shown, "required"))
            shown = at.row->choices ? at.row->choices[0] : "data.csv";
    }
    if (dotted)
        snprintf(text, size, "%s=%s", at.key, shown);
    else
        write_nested(at.key + skip, shown, text, size);
}

void setting_example(const settings_schema *schema, const char *key, const char *given, bool dotted, char *text,
                     size_t size)
{
    const char *last = strrchr(key, '.');
    write_example(schema, key, given, dotted, last ? (size_t)(last + 1 - key) : 0, text, size);
}

static bool is_last_part(const char *candidate, const char *name)
{
    const size_t all = strlen(candidate), part = strlen(name);
    return part > 0 && all >= part && !strcmp(candidate + all - part, name) &&
           (all == part || candidate[all - part - 1] == '.');
}

/* Finds a correct word in the wrong place: a setting or mapping whose key is name or ends with it, preferably below
 * key. */
static bool find_elsewhere(const settings_schema *schema, const char *key, const char *name, char *found)
{
    setting_at at;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; settings_at(schema, i, &at); i++) {
            if (pass == 0 && !is_at_or_below(at.key, key))
                continue;
            const bool group = is_last_part(at.group->key, name);
            if (group || is_last_part(at.key, name)) {
                snprintf(found, SETTING_KEY_MAX, "%s", group ? at.group->key : at.key);
                return true;
            }
        }
    return false;
}

/* Words of other tools, and the settings that they mean. */
typedef struct {
    const char *word, *ours;
} synonym;

static const synonym keys[] = {
    {"penalty", "prior.cloud.penalty"},
    {"regularization", "prior.cloud.penalty"},
    {"regularizer", "prior.cloud.penalty"},
    {"l1", "prior.cloud.penalty"},
    {"l2", "prior.cloud.penalty"},
    {"lambda", "prior.cloud.lambda"},
    {"alpha", "prior.cloud.lambda"},
    {"prior.kind", "prior.cloud.penalty"},
    {"prior.penalty", "prior.cloud.penalty"},
    {"prior.l1", "prior.cloud.penalty"},
    {"prior.l2", "prior.cloud.penalty"},
    {"prior.lambda", "prior.cloud.lambda"},
    {"prior.gamma", "prior.cloud.gamma"},
    {"prior.weight", "prior.cloud.weight"},
    {"prior.client", "prior.cloud"},
    {"model", "loss.kind"},
    {"family", "loss.kind"},
    {"objective", "loss.kind"},
    {"quantile", "loss.tau"},
    {"fit_intercept", "features.intercept"},
    {"normalize", "features.standardize"},
    {"standardise", "features.standardize"},
    {"positive", "features.positive"},
    {"nonnegative", "features.positive"},
    {"standard_errors", "output.errors"},
    {"confidence", "output.confidence"},
    {"classes", "loss.classes"},
    {"target", "data.y"},
    {"label", "data.y"},
    {"response", "data.y"},
    {"y", "data.y"},
    {"client", "data.client"},
    {"clients", "data.split.clients"},
    {"edges", "data.split.edges"},
    {"categorical", "data.categorical"},
    {"missing", "data.missing"},
    {"weights", "data.weight"},
    {"sample_weight", "data.weight"},
    {"seed", "run.seed"},
    {"random_state", "run.seed"},
    {"epochs", "run.iterations"},
    {"rounds", "run.iterations"},
    {"max_iter", "run.iterations"},
    {"local_epochs", "run.edge_rounds"},
    {"tol", "run.stop.gap"},
    {"tolerance", "run.stop.gap"},
    {"learning_rate", "baseline.step"},
};

static const synonym values[] = {
    {"mae", "absolute"},
    {"lad", "absolute"},
    {"l1", "absolute"},
    {"laplace", "absolute"},
    {"mse", "squared"},
    {"ols", "squared"},
    {"l2", "squared"},
    {"linear", "squared"},
    {"gaussian", "squared"},
    {"ridge", "l2"},
    {"least-squares", "squared"},
    {"pinball", "quantile"},
    {"logit", "logistic"},
    {"binomial", "logistic"},
    {"log-loss", "logistic"},
    {"log_loss", "logistic"},
    {"softmax", "multinomial"},
    {"cross-entropy", "multinomial"},
    {"svm", "hinge"},
    {"svc", "hinge"},
    {"squared_hinge", "squared-hinge"},
    {"count", "poisson"},
    {"lasso", "l1"},
    {"elasticnet", "elastic-net"},
    {"elastic_net", "elastic-net"},
    {"enet", "elastic-net"},
    {"true", "global"},
    {"yes", "global"},
    {"false", "none"},
    {"no", "none"},
    {"admm", "hfsad"},
};

const char *setting_synonym(const setting_names *names, const char *text)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        for (size_t n = 0; n < names->count && !strcasecmp(values[i].word, text); n++)
            if (!strcmp(names->name[n], values[i].ours))
                return values[i].ours;
    return NULL;
}

static const char *find_synonym(const char *key, const char *name)
{
    char whole[SETTING_KEY_MAX];
    snprintf(whole, sizeof whole, "%s%s%s", key, *key ? "." : "", name);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(keys[i].word, whole))
            return keys[i].ours;
    return NULL;
}

void setting_hint(const settings_schema *schema, const char *key, const char *name, bool dotted, char *text,
                  size_t size)
{
    setting_names names;
    bool near;
    char elsewhere[SETTING_KEY_MAX];
    const char *known = find_synonym(key, name);
    if (known && !schema->inherits) {
        snprintf(text, size, "did you mean '%s'?", known);
        return;
    }
    settings_below(schema, key, &names);
    if (names.count == 0) { /* a setting has no keys below it */
        snprintf(text, size, "did you mean '%s'?", key);
        return;
    }
    const char *nearest = names.name[names_nearest(&names, name, &near)];
    const char *above = dotted ? key : "", *dot = *above ? "." : "";
    const bool moved = find_elsewhere(schema, key, name, elsewhere); /* the exact word, so no other word is nearer */
    if (near && !moved) {
        snprintf(text, size, "did you mean '%s%s%s'?", above, dot, nearest);
    } else if (!dotted && strchr(name, '.')) {
        char example[SETTING_TEXT_MAX];
        write_example(schema, moved ? elsewhere : "loss", NULL, false, 0, example, sizeof example);
        snprintf(text, size, "a file nests its keys, as in '%s'", example);
    } else if (moved) {
        snprintf(text, size, "did you mean '%s'?", elsewhere);
    } else {
        snprintf(text, size, "known here: ");
        names_list(&names, text, size);
    }
}
