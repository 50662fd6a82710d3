/* The paper's three scenarios and the constants of their step rules; see paper.h. */
#include "lab/experiment.h"

#include <stdio.h>

enum { KM_1, KM_5, KM_10, KM_20, PC_03, PC_05, PC_07, TUNED_10, FIRST_CENTRAL };

/* No space next to markup, because some SVG readers drop it. */
#define KM_LABEL(value) "HFSAD ({/:Italic K_m}=" value ")"
#define PC_LABEL(value) "HFSAD ({/:Italic p_c}=" value ")"

const paper_scenario paper_scenarios[PAPER_SCENARIOS] = {
    {"HFSAD with K_m = 10 against the centralized sub-gradient method",
     6,
     {{"hfsad K_m=10", KM_LABEL("10"), KM_10},
      {"sub-gradient geometric", "sub-gradient, geometric", FIRST_CENTRAL + STEP_GEOMETRIC},
      {"sub-gradient power", "sub-gradient, power", FIRST_CENTRAL + STEP_POWER},
      {"sub-gradient Polyak", "sub-gradient, Polyak", FIRST_CENTRAL + STEP_POLYAK},
      {"sub-gradient constant", "sub-gradient, constant", FIRST_CENTRAL + STEP_CONSTANT},
      {"hfsad tuned", "HFSAD, preset tuned", TUNED_10}}},
    {"Edge rounds per global iteration",
     4,
     {{"hfsad K_m=1", KM_LABEL("1"), KM_1},
      {"hfsad K_m=5", KM_LABEL("5"), KM_5},
      {"hfsad K_m=10", KM_LABEL("10"), KM_10},
      {"hfsad K_m=20", KM_LABEL("20"), KM_20}}},
    {"Participation of the clients, K_m = 1",
     4,
     {{"hfsad p_c=0.3", PC_LABEL("0.3"), PC_03},
      {"hfsad p_c=0.5", PC_LABEL("0.5"), PC_05},
      {"hfsad p_c=0.7", PC_LABEL("0.7"), PC_07},
      {"hfsad p_c=1", PC_LABEL("1"), KM_1}}},
};

/*
 * The constants of the step rules, one column per sign of the snr. Found by `hfsad paper --tune` (100 trials with seeds
 * 1,000,001 to 1,000,100, which no report uses; 300 iterations, +20 and -20 dB): of all combinations of STEP_SIZES and
 * STEP_SHRINKS whose mean error at the end is within a tenth of the least, the one with the lowest curve.
 */
static const step_rule TUNED[STEP_KINDS][2] = {
    [STEP_GEOMETRIC] = {{STEP_GEOMETRIC, 3, 0.9}, {STEP_GEOMETRIC, 3, 0.94}},
    [STEP_POWER] = {{STEP_POWER, 3, 1}, {STEP_POWER, 3, 0.5}},
    [STEP_POLYAK] = {{STEP_POLYAK, 0.25, 1}, {STEP_POLYAK, 0.5, 1}},
    [STEP_CONSTANT] = {{STEP_CONSTANT, 0.1, 1}, {STEP_CONSTANT, 0.3, 1}},
};

enum { GRID_SIZES = 8, GRID_SHRINKS = 9 };

/* Each row ends with 0. */
static const double STEP_SIZES[STEP_KINDS][GRID_SIZES] = {
    [STEP_GEOMETRIC] = {0.1, 0.3, 1, 3, 10},
    [STEP_POWER] = {0.3, 1, 3, 10, 30, 100},
    [STEP_POLYAK] = {0.1, 0.25, 0.5, 0.75, 1, 1.25, 1.5},
    [STEP_CONSTANT] = {0.003, 0.01, 0.03, 0.1, 0.3, 1},
};
static const double STEP_SHRINKS[STEP_KINDS][GRID_SHRINKS] = {
    [STEP_GEOMETRIC] = {0.9, 0.92, 0.94, 0.96, 0.97, 0.98, 0.99, 0.995},
    [STEP_POWER] = {0.5, 0.75, 1, 1.25, 1.5, 2},
    [STEP_POLYAK] = {1},
    [STEP_CONSTANT] = {1},
};

void paper_methods(paper_method methods[PAPER_METHODS], const bool wanted[PAPER_SCENARIOS], double snr_db)
{
    static const struct {
        uint32_t rounds;
        double participation;
    } hfsad[FIRST_CENTRAL] = {{1, 1}, {5, 1}, {10, 1}, {20, 1}, {1, 0.3}, {1, 0.5}, {1, 0.7}, {10, 1}};
    for (size_t i = 0; i < FIRST_CENTRAL; i++)
        methods[i] = (paper_method){.edge_rounds = hfsad[i].rounds, .participation = hfsad[i].participation};
    methods[TUNED_10].tuned = true;
    for (size_t i = 0; i < STEP_KINDS; i++)
        methods[FIRST_CENTRAL + i] = (paper_method){.central = true, .rule = TUNED[i][snr_db < 0]};
    for (size_t i = 0; i < PAPER_METHODS; i++)
        methods[i].skip = true;
    for (size_t s = 0; s < PAPER_SCENARIOS; s++)
        for (size_t i = 0; wanted[s] && i < paper_scenarios[s].n_series; i++)
            methods[paper_scenarios[s].series[i].method].skip = false;
}

size_t paper_step_grid(step_rule rules[STEP_GRID_MOST])
{
    size_t n = 0;
    for (step_kind kind = 0; kind <= STEP_CONSTANT; kind++)
        for (const double *size = STEP_SIZES[kind]; *size > 0; size++)
            for (const double *shrink = STEP_SHRINKS[kind]; *shrink > 0; shrink++)
                rules[n++] = (step_rule){kind, *size, *shrink};
    return n;
}

void step_rule_text(const step_rule *rule, char *text, size_t size)
{
    switch (rule->kind) {
    case STEP_GEOMETRIC:
        snprintf(text, size, "%g * %g^k", rule->size, rule->shrink);
        break;
    case STEP_POWER:
        snprintf(text, size, "%g / k^%g", rule->size, rule->shrink);
        break;
    case STEP_POLYAK:
        snprintf(text, size, "%g * (F - F*)/|g|", rule->size);
        break;
    case STEP_CONSTANT:
        snprintf(text, size, "%g", rule->size);
        break;
    }
}
