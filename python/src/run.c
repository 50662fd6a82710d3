/* hfsad_run. */
#include "binding.h"

#include <unistd.h>

typedef struct {
    RunObject *self;
    const SpecObject *spec;
    const DataObject *data; /* NULL: the spec names it */
    unsigned threads;
} Recipe;

static hfsad_status make(void *context, hfsad_error *err)
{
    const Recipe *c = context;
    return c->data ? hfsad_run_create_on(&c->self->run, c->spec->spec, c->data->data, c->threads, err)
                   : hfsad_run_create(&c->self->run, c->spec->spec, c->threads, err);
}

static PyObject *run_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *words[] = {"spec", "data", "threads", "loss", NULL};
    SpecObject *spec;
    DataObject *data;
    LossObject *loss;
    unsigned threads;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O!O&IO&", words, spec_type, &spec, data_or_none, &data, &threads,
                                     loss_or_none, &loss))
        return NULL;
    RunObject *self = (RunObject *)PyType_GenericAlloc(type, 0);
    Recipe recipe = {self, spec, data, threads};
    if (self && !keeper_make(&self->keep, spec, data, loss, make, &recipe))
        Py_CLEAR(self);
    else if (self && loss)
        atomic_store(&loss->run, self->run);
    return (PyObject *)self;
}

static void release(void *run)
{
    hfsad_run_free(run);
}

static void run_free(PyObject *object)
{
    RunObject *self = (RunObject *)object;
    if (self->keep.loss)
        atomic_store(&((LossObject *)self->keep.loss)->run, NULL);
    keeper_free(object, &self->keep, release, self->run);
}

/* ---- training ---- */

static PyObject *make_progress(const void *from)
{
    const hfsad_progress *p = from;
    PyObject *polish =
        p->polish ? Py_BuildValue("Kd", (unsigned long long)p->polish->exchanges, p->polish->gap) : Py_NewRef(Py_None);
    return figures_tuple(p->figures, polish);
}

static bool on_progress(void *context, const hfsad_progress *progress)
{
    return caller_ask(context, make_progress, progress);
}

static PyObject *run_train(PyObject *object, PyObject *callback)
{
    RunObject *self = (RunObject *)object;
    Caller caller;
    hfsad_result *result = NULL;
    hfsad_error err;
    if (check_handle(self->run, self->keep.process) || !begin_use(&self->keep.busy))
        return NULL;
    caller_begin(&caller, callback);
    const hfsad_status status = hfsad_run_train(self->run, on_progress, &caller, &result, &err);
    const int raised = caller_end(&caller);
    atomic_store(&self->keep.busy, false);
    if (!raised && !loss_raise((LossObject *)self->keep.loss)) {
        if (!status)
            return result_wrap(result);
        raise_status(status, &err);
    }
    hfsad_result_free(result);
    return NULL;
}

static PyObject *run_take(PyObject *object, PyObject *nothing)
{
    RunObject *self = (RunObject *)object;
    hfsad_result *result = NULL;
    hfsad_error err;
    (void)nothing;
    if (check_handle(self->run, self->keep.process) || !begin_use(&self->keep.busy))
        return NULL;
    PyThreadState *saved = PyEval_SaveThread();
    const hfsad_status status = hfsad_result_take(&result, self->run, &err);
    PyEval_RestoreThread(saved);
    atomic_store(&self->keep.busy, false);
    return status ? raise_status(status, &err) : result_wrap(result);
}

static PyObject *run_cancel(PyObject *object, PyObject *nothing)
{
    RunObject *self = (RunObject *)object;
    (void)nothing;
    if (check_handle(self->run, self->keep.process))
        return NULL;
    hfsad_run_cancel(self->run);
    Py_RETURN_NONE;
}

static PyObject *run_warm_start(PyObject *object, PyObject *from)
{
    RunObject *self = (RunObject *)object;
    hfsad_error err;
    if (check_handle(self->run, self->keep.process))
        return NULL;
    if (!PyObject_TypeCheck(from, result_type)) {
        PyErr_SetString(PyExc_TypeError, "warm start: expected a result");
        return NULL;
    }
    return none_or_raise(hfsad_run_warm_start(self->run, ((ResultObject *)from)->result, &err), &err);
}

/* ---- files ---- */

typedef hfsad_status (*file_function)(hfsad_run *run, const char *path, hfsad_error *err);

static PyObject *with_file(PyObject *object, PyObject *args, file_function function)
{
    RunObject *self = (RunObject *)object;
    PyObject *path = NULL;
    hfsad_error err;
    if (!PyArg_ParseTuple(args, "O&", PATH_CONVERTER, &path))
        return NULL;
    hfsad_status status = HFSAD_OK;
    if (!check_handle(self->run, self->keep.process) && begin_use(&self->keep.busy)) {
        PyThreadState *saved = PyEval_SaveThread();
        status = function(self->run, PyBytes_AsString(path), &err);
        PyEval_RestoreThread(saved);
        atomic_store(&self->keep.busy, false);
    }
    Py_DECREF(path);
    return PyErr_Occurred() ? NULL : none_or_raise(status, &err);
}

static hfsad_status save(hfsad_run *run, const char *path, hfsad_error *err)
{
    return hfsad_run_save(run, path, err);
}

static PyObject *run_write(PyObject *self, PyObject *args)
{
    return with_file(self, args, hfsad_run_write);
}

static PyObject *run_save(PyObject *self, PyObject *args)
{
    return with_file(self, args, save);
}

static PyObject *run_resume(PyObject *self, PyObject *args)
{
    return with_file(self, args, hfsad_run_resume);
}

static PyMethodDef methods[] = {
    {"train", run_train, METH_O, "train(callback): trains to the end; the callback may be None."},
    {"take", run_take, METH_NOARGS, "The result of the run as it stands."},
    {"cancel", run_cancel, METH_NOARGS, "Ends the training after the current iteration; from any thread."},
    {"warm_start", run_warm_start, METH_O, "warm_start(result): every node starts from its model there."},
    {"write", run_write, METH_VARARGS, "write(folder): the output folder of `hfsad run`."},
    {"save", run_save, METH_VARARGS, "save(file): a checkpoint."},
    {"resume", run_resume, METH_VARARGS, "resume(file): goes on from a checkpoint."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {{Py_tp_new, run_new},
                              {Py_tp_dealloc, run_free},
                              {Py_tp_methods, methods},
                              {Py_tp_doc, "Run(spec, data, threads, loss)"},
                              {0, NULL}};
PyType_Spec run_type_spec = {"hfsad._core.Run", sizeof(RunObject), 0, Py_TPFLAGS_DEFAULT, slots};
