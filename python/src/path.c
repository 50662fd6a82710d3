/* hfsad_path. */
#include "binding.h"

#include <unistd.h>

typedef struct {
    PathObject *self;
    const SpecObject *spec;
    const DataObject *data; /* NULL: the spec names it */
    const hfsad_path_settings *settings;
} Recipe;

static hfsad_status make(void *context, hfsad_error *err)
{
    const Recipe *c = context;
    return hfsad_path_create(&c->self->path, c->spec->spec, c->data ? c->data->data : NULL, c->settings, err);
}

static PyObject *path_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *words[] = {"spec",  "data",  "threads",       "loss",   "lambdas", "n_lambdas",
                            "ratio", "edges", "heldout_share", "select", NULL};
    SpecObject *spec;
    DataObject *data;
    LossObject *loss;
    PyObject *lambdas;
    Py_buffer view = {0};
    Py_ssize_t n_lambdas;
    int edges, select;
    hfsad_path_settings s = {.size = sizeof s};
    if (!PyArg_ParseTupleAndKeywords(args, names, "O!O&IO&Ondpdi", words, spec_type, &spec, data_or_none, &data,
                                     &s.threads, loss_or_none, &loss, &lambdas, &n_lambdas, &s.ratio, &edges,
                                     &s.heldout_share, &select))
        return NULL;
    if (lambdas != Py_None && PyObject_GetBuffer(lambdas, &view, PyBUF_SIMPLE))
        return NULL;
    s.lambdas = view.buf;
    s.n_lambdas = view.buf ? (size_t)view.len / sizeof(double) : (size_t)n_lambdas;
    s.edges = edges;
    s.select = (hfsad_select)select;
    PathObject *self = (PathObject *)PyType_GenericAlloc(type, 0);
    Recipe recipe = {self, spec, data, &s};
    if (self && !keeper_make(&self->keep, spec, data, loss, make, &recipe))
        Py_CLEAR(self);
    if (view.buf)
        PyBuffer_Release(&view);
    return (PyObject *)self;
}

static void release(void *path)
{
    hfsad_path_free(path);
}

static void path_free(PyObject *object)
{
    PathObject *self = (PathObject *)object;
    keeper_free(object, &self->keep, release, self->path);
}

static PyObject *make_point(const void *from)
{
    const hfsad_path_point *p = from;
    PyObject *const converged = p->verdict == HFSAD_VERDICT_UNKNOWN     ? Py_None
                                : p->verdict == HFSAD_VERDICT_CONVERGED ? Py_True
                                                                        : Py_False;
    return Py_BuildValue("dddnddddOd", p->lambda, p->objective, p->consensus_objective, (Py_ssize_t)p->nonzero,
                         p->heldout, p->bic, p->aic, p->relative_error, converged, p->gap_bound);
}

static bool on_point(void *context, size_t done, const hfsad_path_point *point)
{
    (void)done;
    return caller_ask(context, make_point, point);
}

/* An exception of the loss ends a path, because a path has no cancel function. */
typedef struct {
    Caller caller; /* first: on_point takes it */
    LossObject *loss;
} PathCaller;

static bool on_proceed(void *context)
{
    PathCaller *both = context;
    Caller *caller = &both->caller;
    PyObject *const callback = caller->callback;
    caller->callback = NULL; /* only signals */
    const bool proceed = caller_ask(caller, NULL, NULL);
    caller->callback = callback;
    return proceed && !(both->loss && atomic_load(&both->loss->failed));
}

static PyObject *path_train(PyObject *object, PyObject *callback)
{
    PathObject *self = (PathObject *)object;
    PathCaller both = {.loss = (LossObject *)self->keep.loss};
    hfsad_error err;
    if (check_handle(self->path, self->keep.process) || !begin_use(&self->keep.busy))
        return NULL;
    caller_begin(&both.caller, callback);
    const hfsad_status status = hfsad_path_train(self->path, on_point, on_proceed, &both, &err);
    const int raised = caller_end(&both.caller);
    atomic_store(&self->keep.busy, false);
    return raised || loss_raise(both.loss) ? NULL : none_or_raise(status, &err);
}

static PyObject *path_points(PyObject *object, PyObject *nothing)
{
    PathObject *self = (PathObject *)object;
    (void)nothing;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < hfsad_path_points(self->path); i++) {
        hfsad_path_point point = {.size = sizeof point};
        hfsad_path_at(self->path, i, &point);
        PyObject *row = make_point(&point);
        if (!row || PyList_Append(list, row))
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *path_models(PyObject *object, PyObject *nothing)
{
    PathObject *self = (PathObject *)object;
    const size_t points = hfsad_path_points(self->path), width = hfsad_path_width(self->path);
    (void)nothing;
    PyObject *models = array_of(object, hfsad_path_models(self->path), points * width);
    return models ? Py_BuildValue("Nnn", models, (Py_ssize_t)points, (Py_ssize_t)width) : NULL;
}

static PyObject *path_chosen(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    return PyLong_FromSize_t(hfsad_path_chosen(((PathObject *)object)->path));
}

static PyObject *path_result(PyObject *object, PyObject *nothing)
{
    PathObject *self = (PathObject *)object;
    hfsad_result *result = NULL;
    hfsad_error err;
    (void)nothing;
    if (check_handle(self->path, self->keep.process) || !begin_use(&self->keep.busy))
        return NULL;
    PyThreadState *saved = PyEval_SaveThread();
    const hfsad_status status = hfsad_path_result(self->path, &result, &err);
    PyEval_RestoreThread(saved);
    atomic_store(&self->keep.busy, false);
    if (!loss_raise((LossObject *)self->keep.loss))
        return status ? raise_status(status, &err) : result_wrap(result);
    hfsad_result_free(result);
    return NULL;
}

static PyMethodDef methods[] = {
    {"train", path_train, METH_O, "train(callback): all points; the callback sees each, and may be None."},
    {"points", path_points, METH_NOARGS,
     "(lambda, objective, consensus objective, nonzero, heldout, bic, aic, relative error) of every point."},
    {"models", path_models, METH_NOARGS, "(numbers, points, width): the cloud's models."},
    {"chosen", path_chosen, METH_NOARGS, "The index of the chosen point."},
    {"result", path_result, METH_NOARGS, "The whole result of the chosen point."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {{Py_tp_new, path_new},
                              {Py_tp_dealloc, path_free},
                              {Py_tp_methods, methods},
                              {Py_tp_doc, "A path over the lambda of a prior."},
                              {0, NULL}};
PyType_Spec path_type_spec = {"hfsad._core.Path", sizeof(PathObject), 0, Py_TPFLAGS_DEFAULT, slots};
