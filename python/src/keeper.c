/* What a run and a path have in common: a library handle that borrows from Python objects. */
#include "binding.h"

#include <unistd.h>

bool keeper_make(Keeper *keep, SpecObject *spec, DataObject *data, LossObject *loss,
                 hfsad_status (*make)(void *context, hfsad_error *err), void *context)
{
    hfsad_error err;
    keep->process = getpid();
    keep->data = Py_XNewRef((PyObject *)data);
    keep->loss = Py_XNewRef((PyObject *)loss);
    hfsad_status status = loss_attach(loss, spec->spec, &err);
    if (!status) {
        PyThreadState *saved = PyEval_SaveThread();
        status = make(context, &err);
        PyEval_RestoreThread(saved);
    }
    if (!loss_raise(loss) && status)
        raise_status(status, &err);
    return !PyErr_Occurred();
}

void keeper_free(PyObject *object, Keeper *keep, void (*release)(void *handle), void *handle)
{
    PyTypeObject *type = Py_TYPE(object);
    if (keep->process == getpid()) {
        PyThreadState *saved = PyEval_SaveThread(); /* its threads end; one may wait for the interpreter lock */
        release(handle);
        PyEval_RestoreThread(saved);
    }
    Py_XDECREF(keep->data);
    Py_XDECREF(keep->loss);
    PyObject_Free(object);
    Py_DECREF(type);
}
