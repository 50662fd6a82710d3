/* The report of `hfsad paper`: the claims of the paper and the measurements, as Markdown that is readable as text. */
#include "paper.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 100, CLAIM_WIDTH = 41, CELL_WIDTH = 24, SERIES_WIDTH = 22, PAIR_WIDTH = 13 };

/* Fills lines up to WIDTH; the first begins with lead, the others with the same number of spaces. */
static void paragraph(FILE *out, const char *lead, const char *text)
{
    const size_t indent = strlen(lead);
    size_t column = indent;
    fputs(lead, out);
    while (*text) {
        const size_t length = strcspn(text, " ");
        if (column > indent && column + 1 + length > WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, length, out);
        column += length;
        text += length + (text[length] == ' ');
    }
    fputc('\n', out);
}

typedef struct {
    FILE *out;
    const paper_book *book;
    checkpoints points;
    series_summary summary[SNRS_MOST][PAPER_METHODS];
} report_state;

/* The summaries of one scenario, in its order. */
static void scenario_summaries(const report_state *s, size_t part, size_t scenario, series_summary *series)
{
    for (size_t i = 0; i < paper_scenarios[scenario].n_series; i++)
        series[i] = s->summary[part][paper_scenarios[scenario].series[i].method];
}

static finding judge(const report_state *s, size_t claim, size_t part)
{
    series_summary series[PAPER_SERIES_MOST];
    scenario_summaries(s, part, paper_claims[claim].scenario, series);
    return paper_claims[claim].judge(series, &s->points);
}

static void print_head(const report_state *s)
{
    const paper_settings *p = &s->book->settings;
    char text[600];
    fputs("# The paper's experiment, measured\n\n", s->out);
    snprintf(text, sizeof text,
             "%zu trial%s (seed%s %llu to %llu), %u global iterations; %zu edges with %zu clients each, %zu features, "
             "one observation per client; the paper's constants (preset paper) and the start vector %s%s. The error is "
             "`min(|w - v|^2, |w + v|^2)/|v|^2` of the cloud's w; v is the true model, whose sign is not identifiable.",
             p->trials, p->trials == 1 ? "" : "s", p->trials == 1 ? "" : "s", (unsigned long long)p->data.seed,
             (unsigned long long)(p->data.seed + p->trials - 1), p->iterations, p->data.edges, p->data.clients,
             p->data.features, p->start, s->book->wanted[0] ? ", except for hfsad tuned" : "");
    paragraph(s->out, "", text);
}

static void rule_cell(FILE *out, int width)
{
    fputc('|', out);
    for (int i = 0; i < width + 2; i++)
        fputc('-', out);
}

static void print_claim_table(const report_state *s)
{
    FILE *out = s->out;
    fprintf(out,
            "\n## Claims of the paper and measurements\n\n"
            "| %-*s ",
            CLAIM_WIDTH, "the paper says of HFSAD");
    for (size_t part = 0; part < s->book->n_parts; part++) {
        char text[40];
        snprintf(text, sizeof text, "at %+g dB", s->book->parts[part].snr_db);
        fprintf(out, "| %-*s ", CELL_WIDTH, text);
    }
    fputs("|\n", out);
    rule_cell(out, CLAIM_WIDTH);
    for (size_t part = 0; part < s->book->n_parts; part++)
        rule_cell(out, CELL_WIDTH);
    fputs("|\n", out);
    for (size_t i = 0; i < PAPER_CLAIMS; i++) {
        if (!s->book->wanted[paper_claims[i].scenario])
            continue;
        char text[60];
        snprintf(text, sizeof text, "%zu %s", paper_claims[i].scenario + 1, paper_claims[i].claim);
        fprintf(out, "| %-*s ", CLAIM_WIDTH, text);
        for (size_t part = 0; part < s->book->n_parts; part++)
            fprintf(out, "| %-*s ", CELL_WIDTH, judge(s, i, part).cell);
        fputs("|\n", out);
    }
}

static void print_claim_sentences(const report_state *s)
{
    static const char *const words[] = {
        [VERDICT_NO] = "does not hold", [VERDICT_PARTLY] = "holds in part", [VERDICT_YES] = "holds"};
    fputc('\n', s->out);
    for (size_t i = 0; i < PAPER_CLAIMS; i++)
        for (size_t part = 0; s->book->wanted[paper_claims[i].scenario] && part < s->book->n_parts; part++) {
            const finding f = judge(s, i, part);
            char text[800];
            snprintf(text, sizeof text, "Scenario %zu, \"%s\", at %+g dB: %s. %s", paper_claims[i].scenario + 1,
                     paper_claims[i].claim, s->book->parts[part].snr_db, words[f.verdict], f.sentence);
            paragraph(s->out, "- ", text);
        }
    fputs("\nA claim holds if\n\n", s->out);
    for (size_t i = 0; i < PAPER_CLAIMS; i++) {
        char text[300];
        snprintf(text, sizeof text, "\"%s\": %s;", paper_claims[i].claim, paper_claims[i].test);
        if (s->book->wanted[paper_claims[i].scenario])
            paragraph(s->out, "- ", text);
    }
    fputc('\n', s->out);
    paragraph(s->out, "", "and holds in part if this is true at some of the points or for some of the rules.");
}

static void print_tuned(const report_state *s)
{
    series_summary series[PAPER_SERIES_MOST];
    char text[800];
    fputc('\n', s->out);
    paragraph(s->out, "",
              "The claims are about the paper's constants. `hfsad tuned` is the default preset (here with the paper's "
              "priors). It uses its own start, the robust one, which contributes to its lead:");
    fputc('\n', s->out);
    for (size_t part = 0; part < s->book->n_parts; part++) {
        scenario_summaries(s, part, 0, series);
        snprintf(text, sizeof text, "Scenario 1 at %+g dB. %s", s->book->parts[part].snr_db,
                 tuned_judge(series, &s->points).sentence);
        paragraph(s->out, "- ", text);
    }
}

static void print_figures(const report_state *s, size_t part, size_t scenario, double *room)
{
    const paper_scenario *sc = &paper_scenarios[scenario];
    series_summary series[PAPER_SERIES_MOST];
    scenario_summaries(s, part, scenario, series);
    const paper_result *r = s->book->parts[part].result;
    fprintf(s->out, "\n### Scenario %zu at %+g dB: %s\n\n", scenario + 1, s->book->parts[part].snr_db, sc->title);
    fputs("At the start:", s->out);
    for (size_t i = 0; i < sc->n_series; i++) {
        const size_t method = sc->series[i].method;
        if (i > 0 && !s->book->parts[part].methods[method].tuned) /* these start at the same point as the first */
            continue;
        const spread start = spread_of(r->trials, paper_errors(r, method, 0), room);
        fprintf(s->out, "%s%s mean %s, median %s", i ? "; " : "", i ? sc->series[i].name : "",
                error_text_of(start.mean).text, error_text_of(start.median).text);
    }
    fprintf(s->out, ".\n\n| %-*s ", SERIES_WIDTH, "mean/median after");
    for (size_t k = 0; k < s->points.count; k++)
        fprintf(s->out, "| %*u ", PAIR_WIDTH, s->points.at[k]);
    fprintf(s->out, "| > %.2f |\n", LOST_ABOVE);
    rule_cell(s->out, SERIES_WIDTH);
    for (size_t k = 0; k < s->points.count; k++)
        rule_cell(s->out, PAIR_WIDTH);
    fputs("|--------|\n", s->out);
    for (size_t i = 0; i < sc->n_series; i++) {
        fprintf(s->out, "| %-*s ", SERIES_WIDTH, sc->series[i].name);
        for (size_t k = 0; k < s->points.count; k++) {
            char pair[40];
            snprintf(pair, sizeof pair, "%s/%s", error_text_of(series[i].mean[k]).text,
                     error_text_of(series[i].median[k]).text);
            fprintf(s->out, "| %*s ", PAIR_WIDTH, pair);
        }
        fprintf(s->out, "| %6zu |\n", series[i].lost);
    }
}

/* Scenario 2 at equal work: K_m = 20 does twenty times the work of K_m = 1 in an iteration. */
static void print_equal_work(const report_state *s, double *room)
{
    const paper_scenario *sc = &paper_scenarios[1];
    const uint32_t rounds = s->book->settings.iterations;
    for (size_t part = 0; part < s->book->n_parts; part++) {
        char text[600];
        int n = snprintf(text, sizeof text, "At %+g dB and equal work, %u edge rounds for each, the mean error is",
                         s->book->parts[part].snr_db, rounds);
        for (size_t i = 0; i < sc->n_series; i++) {
            const size_t method = sc->series[i].method;
            const paper_result *r = s->book->parts[part].result;
            const uint32_t at = rounds / s->book->parts[part].methods[method].edge_rounds;
            const double mean = spread_of(r->trials, paper_errors(r, method, at), room).mean;
            n += snprintf(text + n, sizeof text - (size_t)n, "%s %s for %s (%u iterations)", i ? "," : "",
                          error_text_of(mean).text, strrchr(sc->series[i].name, ' ') + 1, at);
        }
        snprintf(text + n, sizeof text - (size_t)n, ".");
        paragraph(s->out, "- ", text);
    }
}

static void print_rules(const report_state *s)
{
    const paper_scenario *sc = &paper_scenarios[0];
    for (size_t part = 0; part < s->book->n_parts; part++) {
        const double snr = s->book->parts[part].snr_db;
        char text[800], step[40];
        int n = snprintf(text, sizeof text, "Steps of the sub-gradient method at %+g dB:", snr);
        for (size_t i = 0, k = 0; i < sc->n_series; i++) {
            const paper_method *m = &s->book->parts[part].methods[sc->series[i].method];
            if (!m->central)
                continue;
            step_rule_text(&m->rule, step, sizeof step);
            n += snprintf(text + n, sizeof text - (size_t)n, "%s %s", k++ ? "," : "", step);
        }
        snprintf(text + n, sizeof text - (size_t)n,
                 "; the constants were chosen for 300 iterations at %s20 dB on other seeds (`hfsad paper --tune`).",
                 snr < 0 ? "-" : "+");
        paragraph(s->out, "- ", text);
    }
    paragraph(s->out, "- ",
              "Polyak's step needs the smallest objective F*, which is unknown in practice. Here the objective at the "
              "true model is used instead, which favours that rule if the noise is small.");
}

static void print_notes(const report_state *s, double *room)
{
    FILE *out = s->out;
    fputs("\n## Notes on these figures\n\n", out);
    if (s->book->wanted[0])
        paragraph(out, "- ",
                  "Iterations are not equal work: one HFSAD iteration with K_m = 10 makes ten passes over the clients' "
                  "data, one iteration of the sub-gradient method makes one. The sub-gradient method also needs all "
                  "data in one place.");
    if (s->book->wanted[1])
        print_equal_work(s, room);
    if (s->book->wanted[0])
        print_rules(s);
    paragraph(out, "- ",
              "The paper prints SNR -20 dB. By its own formula this is noise with 100 times the power of <x,w>. As a "
              "noise-to-signal ratio it is +20 dB here. It is not known which of the two its figures show.");
    char text[500];
    const bool spectral = !strcmp(s->book->settings.start, "spectral");
    snprintf(text, sizeof text, "The paper gives no start vector. All methods%s start from %s",
             s->book->wanted[0] ? " except hfsad tuned" : "",
             spectral ? "the spectral start (the leading eigenvector of the clipped intensities), the usual choice for "
                        "phase retrieval; --start selects another."
                      : "the same start; the default is the spectral start, the usual choice for phase retrieval.");
    paragraph(out, "- ", text);
    snprintf(text, sizeof text,
             "\"> %.2f\" counts the trials whose error is above %.2f after the last iteration. A few of them dominate "
             "the mean, which the paper shows. The plots show the mean (line with marks), the median (dashed) and the "
             "quartiles (band). Each point is the mean of an iteration and its two neighbours, because some methods "
             "oscillate; the CSV files contain the values themselves.",
             LOST_ABOVE, LOST_ABOVE);
    paragraph(out, "- ", text);
}

void paper_report(FILE *out, const paper_book *book, double *room)
{
    report_state s = {.out = out, .book = book, .points = checkpoints_of(book->settings.iterations)};
    for (size_t part = 0; part < book->n_parts; part++)
        for (size_t i = 0; i < PAPER_METHODS; i++)
            if (!book->parts[part].methods[i].skip)
                s.summary[part][i] = series_summarize(book->parts[part].result, i, &s.points, room);
    print_head(&s);
    print_claim_table(&s);
    print_claim_sentences(&s);
    if (book->wanted[0])
        print_tuned(&s);
    fputs("\n## Figures\n", out);
    for (size_t i = 0; i < PAPER_SCENARIOS; i++)
        for (size_t part = 0; book->wanted[i] && part < book->n_parts; part++)
            print_figures(&s, part, i, room);
    print_notes(&s, room);
}
