/*
 * The polish of a federation in one process, without sockets: the cloud's solver asks through the tree and comes to
 * the numbers of the simulator, bit for bit, also if clients are killed; if one is lost for ever, or the cloud lacks
 * memory at any point, the polish fails and nothing else does.
 */
#include "allocations.h"
#include "federation.h"
#include "process.h"

#include "polish/task.h"

#include "run/handle.h"

enum { NODES_MOST = 64 };

static const problem polished[] = {
    {"quantile", 3, two, two_clients, 6, 12, 0, false, "loss: {kind: quantile, tau: 0.7}\nrun: {polish: true}\n"},
    {"phase retrieval", 5, deep, deep_clients, 5, 9, 0, false,
     "loss: {kind: phase-retrieval, box: 5}\nrun: {polish: true}\n"},
    {"star", 3, two, two_clients, 6, 12, 0, false,
     "algorithm: star\nloss: {kind: quantile, tau: 0.7}\nprior: {cloud: {penalty: l1, weight: 1, lambda: 0.5}}\n"},
    {"chosen columns", 3, two, two_clients, 90, 12, 0, false,
     "algorithm: star\nloss: {kind: absolute}\nprior: {cloud: {penalty: l1, weight: 1, lambda: 12}}\n"},
};

typedef struct {
    const problem *p;
    uint64_t seed;
    rng r;
    hfsad_spec *spec;
    dataset *d;
    size_t nodes;
    process all[NODES_MOST];
    const double *result; /* of the set-up; NULL: not yet */
    size_t n_result;
    unsigned kills;                              /* of clients that are still to come */
    size_t liar;                                 /* a node that says it is lost; 0: none ... */
    uint64_t lies_from;                          /* ... from this question of an attempt on */
    size_t left;                                 /* allocations of the root; SIZE_MAX: as many as it likes */
    bool once;                                   /* then there is memory again */
    uint64_t asked;                              /* the root's questions */
    uint64_t attempts;                           /* those that were the first of an attempt */
    double numbers[FEDERATION_POLISH_HEAD + 96]; /* of the polish */
} world;

static dataset *data_of(const world *w)
{
    rng r = {rng_key(w->seed, rng_stream(w->p->name)), 0};
    return make_data(w->p, &r);
}

/* ---- a process ---- */

static void make(world *w, size_t number)
{
    node_free(process_node(&w->all[number], w->d, number, w->result, w->n_result));
}

static void begin(world *w, size_t number)
{
    process *at = &w->all[number];
    hfsad_error err;
    process_begin(at, w->spec, w->d, number, number < w->d->n_inner ? NULL : data_of(w));
    if (!w->result)
        return;
    ok(inquiry_remember(at->q, w->result, w->n_result, &err), &err);
    make(w, number);
}

/* ---- messages ---- */

/* The root's allocations are those that fail. */
static void limit(world *w, size_t number)
{
    allocations_left = number == 0 ? w->left : SIZE_MAX;
}

static void unlimit(world *w, size_t number)
{
    if (number == 0)
        w->left = allocations_left == 0 && w->once ? SIZE_MAX : allocations_left;
    allocations_left = SIZE_MAX;
}

static void hand_over(world *w, size_t to, size_t from, const message *m)
{
    hfsad_error err;
    hfsad_status failed;
    node_refusal why;
    limit(w, to);
    (void)inquiry_handle(w->all[to].q, from, m, &why, &failed, &err);
    unlimit(w, to);
    ok(failed, &err);
}

static void deliver(world *w, size_t number, const node_letter *letter)
{
    const message *m = &letter->m;
    if (number == 0) {
        const double *v = m->values;
        w->asked++;
        w->attempts += v[0] >= INQUIRY_POLISH && v[INQUIRY_HEAD + 1] == 1;
    }
    if (letter->to_parent && number == w->liar && w->result && (m->round & 0xffffff) >= w->lies_from)
        m->values[0] = 1;
    if (letter->to_parent)
        hand_over(w, tree_parent(w->d, number), tree_slot(w->d, number), m);
    for (size_t c = 0; !letter->to_parent && c < tree_children(w->d, number); c++) {
        const size_t to = tree_child(w->d, number, c);
        if (to >= w->d->n_inner && w->kills > 0 && below(&w->r, 100) == 0) {
            w->kills--;
            process_end(&w->all[to]);
            begin(w, to);
        }
        hand_over(w, to, NODE_PARENT, m);
    }
}

/* A turn for the root's script: until nobody has anything to say. */
static hfsad_status play(void *context, hfsad_error *err)
{
    world *w = context;
    node_letter letter;
    (void)err;
    unlimit(w, 0);
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < w->nodes; i++)
            while (inquiry_next_letter(w->all[i].q, &letter)) {
                deliver(w, i, &letter);
                more = true;
            }
    }
    limit(w, 0);
    return HFSAD_OK;
}

/* ---- the set-up, and the polish from its start ---- */

static world *world_create(const problem *p, uint64_t seed, hfsad_run **run)
{
    world *w = alloc_zero(1, sizeof *w);
    hfsad_error err;
    char text[1000];
    assert_non_null(w);
    snprintf(text, sizeof text, "data: x\n%s", p->spec);
    w->p = p;
    w->seed = seed;
    w->left = SIZE_MAX;
    w->r = (rng){rng_key(seed, rng_stream("kills")), 0};
    ok(spec_load_text(&w->spec, "spec.yaml", text, strlen(text), &err), &err);
    ok(run_create_on(run, w->spec, data_of(w), 1, &err), &err);
    w->d = data_of(w);
    w->nodes = w->d->n_inner + w->d->n_leaves;
    assert_true(w->nodes <= NODES_MOST);
    for (size_t i = 0; i < w->nodes; i++)
        begin(w, i);
    const inquiry_turns turns = {w, play};
    ok(federation_set_up(w->all[0].f, w->all[0].q, &turns, &err), &err);
    w->result = inquiry_result(w->all[0].q, &w->n_result);
    for (size_t i = 0; i < w->nodes; i++)
        make(w, i);
    return w;
}

static void world_free(world *w, hfsad_run *run)
{
    for (size_t i = 0; i < w->nodes; i++)
        process_end(&w->all[i]);
    hfsad_run_free(run);
    hfsad_spec_free(w->spec);
    dataset_free(w->d);
    free(w);
}

static const double *polish(world *w, uint64_t life)
{
    const inquiry_turns turns = {w, play};
    const process *root = &w->all[0];
    hfsad_error err;
    assert_true(federation_shape(root->f)->M <= 96);
    w->asked = w->attempts = 0;
    limit(w, 0);
    const hfsad_status status = federation_polish_from(root->f, root->q, &turns, life,
                                                       federation_outcome(root->f)->start, NULL, w->numbers, &err);
    unlimit(w, 0);
    ok(status, &err);
    return w->numbers;
}

static void compare_polish(const world *w, const hfsad_run *run, const double *numbers)
{
    const polish_result found = federation_polish_result(numbers);
    assert_null(federation_polish_failure(numbers));
    assert_true(run->polish.accepted && found.finished);
    if (!same(&found.after, &run->polish.objective_after, 1) || found.exchanges != run->polish.exchanges ||
        !same(numbers + FEDERATION_POLISH_HEAD, run->polished, run->data->M))
        fail_msg("%s, seed %" PRIu64 ": polished to %.17g in %" PRIu64 " exchanges, not to %.17g in %" PRIu64,
                 w->p->name, w->seed, found.after, found.exchanges, run->polish.objective_after, run->polish.exchanges);
}

static void polish_run(hfsad_run *run)
{
    hfsad_polish result;
    hfsad_error err;
    ok(run_polish(run, NULL, NULL, &result, &err), &err);
}

static void test_same(void **state)
{
    (void)state;
    uint64_t again = 0;
    for (size_t i = 0; i < sizeof polished / sizeof *polished; i++)
        for (uint64_t life = 1; life < 4; life++) {
            hfsad_run *run;
            world *w = world_create(&polished[i], life, &run);
            polish_run(run);
            const double *numbers = polish(w, life);
            assert_true(w->attempts == 1);
            compare_polish(w, run, numbers);
            w->kills = 5;
            numbers = polish(w, life + 1);
            compare_polish(w, run, numbers);
            again += w->attempts - 1;
            world_free(w, run);
        }
    assert_true(again > 10); /* clients were killed in the middle of it */
}

/* Whoever is lost in every attempt does not keep the cloud for ever. */
static void test_lost(void **state)
{
    (void)state;
    hfsad_run *run;
    world *w = world_create(&polished[0], 11, &run);
    polish_run(run);
    w->liar = w->nodes - 1;
    const double *numbers = polish(w, 1);
    assert_true(numbers[0] == POLISH_LOST && numbers[1] == 0);
    assert_non_null(strstr(federation_polish_failure(numbers), "fails"));
    assert_true(w->attempts == 1000 && w->asked == 1000);
    for (w->lies_from = 2; w->lies_from < 4; w->lies_from++) { /* also if it answers the first ones */
        w->attempts = 0;
        numbers = polish(w, w->lies_from);
        if (numbers[0] != POLISH_LOST || w->attempts < 1000 || w->attempts > 1300)
            fail_msg("from question %d: %g, %d attempts", (int)w->lies_from, numbers[0], (int)w->attempts);
    }
    w->liar = 0; /* the next life may find it there again */
    numbers = polish(w, 5);
    compare_polish(w, run, numbers);
    world_free(w, run);
}

static void test_no_memory(void **state)
{
    (void)state;
    hfsad_run *run;
    uint64_t life = 0;
    bool finished = false;
    world *w = world_create(&polished[1], 12, &run);
    polish_run(run);
    for (size_t n = 0; !finished; n = n < 40 ? n + 1 : n + n / 3) {
        w->left = n;
        const double *numbers = polish(w, ++life);
        finished = w->left > 0;
        if (finished)
            compare_polish(w, run, numbers);
        else if (numbers[0] == POLISH_NO_MEMORY) /* the last allocation may have been the last there was to make */
            assert_true(numbers[1] == 0 && strstr(federation_polish_failure(numbers), "memory"));
        else
            compare_polish(w, run, numbers);
    }
    assert_true(life > 20);
    world_free(w, run);
}

/* Where there is no room for what clients would have to be asked again, the solver begins anew. */
static void test_short_of_memory(void **state)
{
    (void)state;
    hfsad_run *run;
    size_t came_through = 0;
    world *w = world_create(&polished[0], 13, &run);
    polish_run(run);
    w->once = true;
    for (uint64_t life = 1; life <= 60; life++) {
        w->left = life;
        w->kills = 3;
        const double *numbers = polish(w, life);
        if (numbers[0] == POLISH_NO_MEMORY)
            continue;
        compare_polish(w, run, numbers);
        came_through += w->attempts > 1;
    }
    assert_true(came_through > 10);
    world_free(w, run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_short_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
