#include "core/scores.h"

#include <math.h>
#include <string.h>

double scores_loss(const score_losses *s, const double *scores, double y)
{
    double sum = 0;
    for (size_t k = 0; k < s->K; k++) {
        const hfsad_loss loss = score_loss(s, k);
        sum += hfsad_loss_value(&loss, score_y(s, k, y), scores[k]);
    }
    return sum;
}

static bool are_classes(const hfsad_loss *loss, size_t classes)
{
    return classes && (loss_kind_of(loss)->labels || loss_kind_of(loss)->several);
}

bool scores_fit(const hfsad_loss *loss, size_t classes, double y)
{
    if (are_classes(loss, classes))
        return y >= 0 && y < (double)classes && y == floor(y);
    return loss_fits(loss, y);
}

const char *scores_take(const hfsad_loss *loss, size_t classes)
{
    return are_classes(loss, classes) ? "the classes 0, 1, ... below loss.classes" : loss_kind_of(loss)->takes;
}

static double client_value(void *context, const hfsad_client *client, const double *w)
{
    const score_losses *s = context;
    const client_rows *rows = client->inside;
    double scores[SOFTMAX_CLASSES], sum = 0;
    for (size_t r = 0; r < rows->count; r++) {
        softmax_scores(rows, r, s->K, w, scores);
        sum += row_weight(rows, r) * scores_loss(s, scores, rows->y[r]);
    }
    return sum;
}

static double client_gradient(void *context, const hfsad_client *client, const double *w, double *g)
{
    const score_losses *s = context;
    const client_rows *rows = client->inside;
    double scores[SOFTMAX_CLASSES], sum = 0;
    memset(g, 0, client->M * sizeof *g);
    for (size_t r = 0; r < rows->count; r++) {
        const double c = row_weight(rows, r), y = rows->y[r];
        softmax_scores(rows, r, s->K, w, scores);
        sum += c * scores_loss(s, scores, y);
        for (size_t k = 0; k < s->K; k++) {
            const hfsad_loss loss = score_loss(s, k);
            scores[k] = c * hfsad_loss_slope(&loss, score_y(s, k, y), scores[k]);
        }
        softmax_add(rows, r, s->K, scores, g);
    }
    return sum;
}

hfsad_own_loss scores_own(score_losses *s)
{
    return (hfsad_own_loss){
        .size = sizeof(hfsad_own_loss), .context = s, .value = client_value, .gradient = client_gradient};
}
