/* The module itself, and helpers for all its types. */
#include "binding.h"

#include <time.h>
#include <unistd.h>

PyTypeObject *spec_type, *data_type, *loss_type, *run_type, *result_type, *path_type, *array_type;
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

static double seconds_now(void)
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

/* ---- arrays ---- */

typedef struct {
    PyObject_HEAD PyObject *owner;
    const double *at;
    Py_ssize_t count;
} ArrayObject;

PyObject *array_of(PyObject *owner, const double *at, size_t count)
{
    ArrayObject *array = PyObject_New(ArrayObject, array_type);
    if (!array)
        return NULL;
    array->owner = Py_NewRef(owner);
    array->at = at;
    array->count = (Py_ssize_t)count;
    return (PyObject *)array;
}

static int array_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    static double nothing;
    static Py_ssize_t stride = sizeof(double);
    ArrayObject *array = (ArrayObject *)self;
    void *at = (void *)(array->count ? array->at : &nothing);
    if (PyBuffer_FillInfo(view, self, at, array->count * stride, 1, flags))
        return -1;
    view->itemsize = stride;
    view->format = flags & PyBUF_FORMAT ? "d" : NULL;
    view->shape = flags & PyBUF_ND ? &array->count : NULL;
    view->strides = flags & PyBUF_STRIDES ? &stride : NULL;
    return 0;
}

static void array_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((ArrayObject *)self)->owner);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot array_slots[] = {
    {Py_tp_dealloc, array_free}, {Py_bf_getbuffer, array_get_buffer}, {Py_tp_doc, "Numbers of a result."}, {0, NULL}};
PyType_Spec array_type_spec = {"hfsad._core.Array", sizeof(ArrayObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, array_slots};

/* ---- functions ---- */

static PyObject *choices_tuple(const char *const *choices)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && choices && choices[i]; i++) {
        PyObject *word = PyUnicode_FromString(choices[i]);
        if (!word || PyList_Append(list, word))
            Py_CLEAR(list);
        Py_XDECREF(word);
    }
    PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

static PyObject *settings(PyObject *module, PyObject *nothing)
{
    static const char *const types[] = {"real", "whole", "flag", "text", "choice"};
    (void)module, (void)nothing;
    PyObject *list = PyList_New(0);
    hfsad_setting s = {.size = sizeof s};
    for (size_t i = 0; list && hfsad_settings_at(i, &s); i++) {
        PyObject *row =
            Py_BuildValue("sssssN", s.key, types[s.type], s.fallback, s.range, s.help, choices_tuple(s.choices));
        if (!row || PyList_Append(list, row))
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyMethodDef functions[] = {
    {"settings", settings, METH_NOARGS, "All settings of a spec: (key, type, default, range, help, choices)."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_def = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "hfsad._core",
    .m_doc = "The handles of libhfsad. The package hfsad has the classes for users.",
    .m_size = -1,
    .m_methods = functions,
};

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type)
{
    *type = (PyTypeObject *)PyType_FromSpec(spec);
    return *type ? PyModule_AddType(module, *type) : -1;
}

static int fill(PyObject *module)
{
    diverged_error = PyErr_NewExceptionWithDoc("hfsad.DivergedError", "The iterates are no longer finite.",
                                               PyExc_ArithmeticError, NULL);
    if (!diverged_error || PyModule_AddObjectRef(module, "DivergedError", diverged_error) ||
        PyModule_AddStringConstant(module, "version", hfsad_version()))
        return -1;
    return add_type(module, &array_type_spec, &array_type) || add_type(module, &spec_type_spec, &spec_type) ||
                   add_type(module, &data_type_spec, &data_type) || add_type(module, &loss_type_spec, &loss_type) ||
                   add_type(module, &run_type_spec, &run_type) || add_type(module, &result_type_spec, &result_type) ||
                   add_type(module, &path_type_spec, &path_type)
               ? -1
               : 0;
}

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&module_def);
    if (module && fill(module))
        Py_CLEAR(module);
    return module;
}
