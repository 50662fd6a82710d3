/*
 * A loss written in Python. The library calls it from any of its threads without the interpreter lock; every call takes
 * the lock. Vectors are passed as bytes objects, which the callable may keep. The first exception is kept and cancels
 * the run; every later call returns 0 without calling Python, until the caller raises the exception.
 */
#include "binding.h"

#include <string.h>

static PyObject *loss_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *words[] = {"open", "value", "gradient", "prox", NULL};
    PyObject *open, *value, *gradient, *prox;
    if (!PyArg_ParseTupleAndKeywords(args, names, "OOOO", words, &open, &value, &gradient, &prox))
        return NULL;
    LossObject *self = (LossObject *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->open = Py_NewRef(open);
    self->value = Py_NewRef(value);
    self->gradient = gradient == Py_None ? NULL : Py_NewRef(gradient);
    self->prox = prox == Py_None ? NULL : Py_NewRef(prox);
    self->clients = PyDict_New();
    if (!self->clients)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int loss_traverse(PyObject *object, visitproc visit, void *arg)
{
    LossObject *self = (LossObject *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->open);
    Py_VISIT(self->value);
    Py_VISIT(self->gradient);
    Py_VISIT(self->prox);
    Py_VISIT(self->clients);
    Py_VISIT(self->error);
    return 0;
}

static int loss_clear(PyObject *object)
{
    LossObject *self = (LossObject *)object;
    Py_CLEAR(self->open);
    Py_CLEAR(self->value);
    Py_CLEAR(self->gradient);
    Py_CLEAR(self->prox);
    Py_CLEAR(self->clients);
    Py_CLEAR(self->error);
    return 0;
}

static void loss_free(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    loss_clear(object);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

/* ---- calls from the library ---- */

static void keep_error(LossObject *self)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace)
        PyException_SetTraceback(value, trace);
    if (!self->error)
        self->error = Py_NewRef(value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    atomic_store(&self->failed, true);
    hfsad_run *run = atomic_load(&self->run);
    if (run)
        hfsad_run_cancel(run);
}

static PyObject *bytes_of(const double *numbers, size_t count)
{
    return PyBytes_FromStringAndSize((const char *)numbers, (Py_ssize_t)(count * sizeof *numbers));
}

/* All rows, one after the other, M numbers each. */
static PyObject *rows_of(const hfsad_client *client)
{
    PyObject *bytes = bytes_of(NULL, client->rows * client->M);
    for (size_t row = 0; bytes && row < client->rows; row++)
        hfsad_client_row(client, row, (double *)(void *)PyBytes_AsString(bytes) + row * client->M);
    return bytes;
}

/* The result of `open` for the client's rows; borrowed. Made at the first call, because the rows of a run do not
 * change. */
static PyObject *client_of(LossObject *self, const hfsad_client *client)
{
    PyObject *key = PyLong_FromSize_t(client->node), *made = key ? PyDict_GetItemWithError(self->clients, key) : NULL;
    if (key && !made && !PyErr_Occurred()) {
        PyObject *weight = client->weight ? bytes_of(client->weight, client->rows) : Py_NewRef(Py_None);
        made = PyObject_CallFunction(self->open, "nnNNN", (Py_ssize_t)client->rows, (Py_ssize_t)client->M,
                                     rows_of(client), bytes_of(client->y, client->rows), weight);
        if (made && PyDict_SetItem(self->clients, key, made))
            Py_CLEAR(made);
        Py_XDECREF(made); /* the dictionary has it */
    }
    Py_XDECREF(key);
    return made;
}

/* Reads the numbers of a bytes-like answer. */
static void copy_answer(PyObject *answer, double *to, size_t count)
{
    Py_buffer view;
    if (!answer || PyObject_GetBuffer(answer, &view, PyBUF_SIMPLE))
        return;
    if (view.len == (Py_ssize_t)(count * sizeof *to))
        memcpy(to, view.buf, (size_t)view.len);
    else
        PyErr_Format(PyExc_ValueError, "own loss: %zd numbers came back; expected %zu",
                     view.len / (Py_ssize_t)sizeof *to, count);
    PyBuffer_Release(&view);
}

static double loss_value(void *context, const hfsad_client *client, const double *w)
{
    LossObject *self = context;
    double value = 0;
    if (atomic_load(&self->failed))
        return value;
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *rows = client_of(self, client), *answer = NULL;
    if (rows)
        answer = PyObject_CallFunction(self->value, "ON", rows, bytes_of(w, client->M));
    if (answer)
        value = PyFloat_AsDouble(answer);
    Py_XDECREF(answer);
    if (PyErr_Occurred())
        keep_error(self);
    PyGILState_Release(gil);
    return value;
}

static double loss_gradient(void *context, const hfsad_client *client, const double *w, double *g)
{
    LossObject *self = context;
    double value = 0;
    memset(g, 0, client->M * sizeof *g);
    if (atomic_load(&self->failed))
        return value;
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *rows = client_of(self, client), *answer = NULL;
    if (rows)
        answer = PyObject_CallFunction(self->gradient, "ON", rows, bytes_of(w, client->M));
    if (answer) {
        value = PyFloat_AsDouble(PyTuple_GetItem(answer, 0));
        copy_answer(PyTuple_GetItem(answer, 1), g, client->M);
    }
    Py_XDECREF(answer);
    if (PyErr_Occurred())
        keep_error(self);
    PyGILState_Release(gil);
    return value;
}

static void loss_prox(void *context, const hfsad_client *client, const double *v, double sigma, double *w)
{
    LossObject *self = context;
    if (atomic_load(&self->failed))
        return;
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *rows = client_of(self, client), *answer = NULL;
    if (rows)
        answer = PyObject_CallFunction(self->prox, "ONdN", rows, bytes_of(v, client->M), sigma, bytes_of(w, client->M));
    copy_answer(answer, w, client->M);
    Py_XDECREF(answer);
    if (PyErr_Occurred())
        keep_error(self);
    PyGILState_Release(gil);
}

/* ---- for runs and paths ---- */

hfsad_status loss_attach(LossObject *loss, hfsad_spec *spec, hfsad_error *err)
{
    if (!loss)
        return HFSAD_OK;
    const hfsad_own_loss own = {
        .size = sizeof own,
        .context = loss,
        .value = loss_value,
        .gradient = loss->gradient ? loss_gradient : NULL,
        .prox = loss->prox ? loss_prox : NULL,
    };
    return hfsad_spec_own_loss(spec, &own, err);
}

int loss_raise(LossObject *loss)
{
    if (!loss || !loss->error)
        return 0;
    PyErr_SetObject((PyObject *)Py_TYPE(loss->error), loss->error);
    return -1;
}

int loss_or_none(PyObject *object, void *to)
{
    if (object != Py_None && !PyObject_TypeCheck(object, loss_type)) {
        PyErr_SetString(PyExc_TypeError, "loss: expected hfsad._core.Loss or None");
        return 0;
    }
    *(LossObject **)to = object == Py_None ? NULL : (LossObject *)object;
    return 1;
}

static PyObject *attach_to(PyObject *self, PyObject *spec)
{
    hfsad_error err;
    if (!PyObject_TypeCheck(spec, spec_type)) {
        PyErr_SetString(PyExc_TypeError, "attach: expected hfsad._core.Spec");
        return NULL;
    }
    return none_or_raise(loss_attach((LossObject *)self, ((SpecObject *)spec)->spec, &err), &err);
}

static PyObject *raise_error(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    if (loss_raise((LossObject *)self))
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"attach", attach_to, METH_O, "attach(spec): for a process of a federation; the loss must outlive it."},
    {"raise_error", raise_error, METH_NOARGS, "Raises the exception that a callable has raised, if there is one."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {{Py_tp_new, loss_new},
                              {Py_tp_methods, methods},
                              {Py_tp_dealloc, loss_free},
                              {Py_tp_traverse, loss_traverse},
                              {Py_tp_clear, loss_clear},
                              {Py_tp_doc, "Loss(open, value, gradient, prox): callables on bytes; for one run."},
                              {0, NULL}};
PyType_Spec loss_type_spec = {"hfsad._core.Loss", sizeof(LossObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                              slots};
