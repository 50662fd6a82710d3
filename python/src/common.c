/* What both modules use: errors, texts, callbacks. */
#include "binding.h"

#include <time.h>
#include <unistd.h>

PyObject *diverged_error;

PyObject *raise_status(hfsad_status status, const hfsad_error *err)
{
    PyObject *const kind[] = {
        [HFSAD_ERROR_INPUT] = PyExc_ValueError,
        [HFSAD_ERROR_IO] = PyExc_OSError,
        [HFSAD_ERROR_MEMORY] = PyExc_MemoryError,
        [HFSAD_ERROR_DIVERGED] = diverged_error,
    };
    if (!PyErr_Occurred())
        PyErr_SetString(kind[status], err->message);
    return NULL;
}

PyObject *none_or_raise(hfsad_status status, const hfsad_error *err)
{
    return status ? raise_status(status, err) : Py_NewRef(Py_None);
}

const char **texts_of(PyObject *sequence, size_t count, PyObject **keep, size_t *found)
{
    *keep = PySequence_List(sequence);
    if (!*keep)
        return NULL;
    const size_t n = (size_t)PyList_Size(*keep);
    if (count != SIZE_MAX && n != count) {
        PyErr_Format(PyExc_ValueError, "%zu names; expected %zu", n, count);
        return NULL;
    }
    const char **texts = PyMem_Malloc((n ? n : 1) * sizeof *texts);
    if (!texts)
        return (const char **)PyErr_NoMemory();
    for (size_t i = 0; i < n; i++) {
        texts[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(*keep, (Py_ssize_t)i), NULL);
        if (!texts[i]) {
            PyMem_Free(texts);
            return NULL;
        }
    }
    *found = n;
    return texts;
}

bool begin_use(atomic_bool *busy)
{
    if (!atomic_exchange(busy, true))
        return true;
    PyErr_SetString(PyExc_RuntimeError, "this object is in use by another thread; make one for each thread");
    return false;
}

int check_handle(const void *handle, pid_t owner)
{
    if (handle && owner == getpid())
        return 0;
    PyErr_SetString(PyExc_RuntimeError, handle ? "this object was made by the parent process; make one in this process"
                                               : "this object was not set up");
    return -1;
}

/* ---- callbacks ---- */

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void caller_begin(Caller *caller, PyObject *callback)
{
    *caller = (Caller){.callback = callback == Py_None ? NULL : callback};
    caller->saved = PyEval_SaveThread();
}

bool caller_ask(Caller *caller, PyObject *(*make)(const void *from), const void *from)
{
    if (caller->type)
        return false;
    const double now = seconds_now();
    if (!caller->callback && now < caller->looked + 0.1)
        return true;
    caller->looked = now;
    PyEval_RestoreThread(caller->saved);
    bool proceed = PyErr_CheckSignals() == 0;
    PyObject *told = proceed && caller->callback ? make(from) : NULL;
    if (told) {
        PyObject *answer = PyObject_CallFunctionObjArgs(caller->callback, told, NULL);
        proceed = answer && answer != Py_False; /* None goes on */
        Py_XDECREF(answer);
        Py_DECREF(told);
    }
    PyErr_Fetch(&caller->type, &caller->value, &caller->trace);
    proceed = proceed && !caller->type;
    caller->saved = PyEval_SaveThread();
    return proceed;
}

int caller_end(Caller *caller)
{
    PyEval_RestoreThread(caller->saved);
    if (!caller->type)
        return 0;
    PyErr_Restore(caller->type, caller->value, caller->trace);
    return -1;
}

PyObject *figures_tuple(const hfsad_figures *f, PyObject *polish)
{
    return Py_BuildValue("KddddddddKKN", (unsigned long long)f->iteration, f->objective, f->consensus_objective,
                         f->primal_residual, f->dual_residual, f->consensus_gap, f->smoothing_gap, f->relative_error,
                         f->seconds, (unsigned long long)f->bytes_up, (unsigned long long)f->bytes_down, polish);
}
