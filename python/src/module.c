/* The module hfsad._core, and arrays of results. */
#include "binding.h"

PyTypeObject *spec_type, *data_type, *loss_type, *run_type, *result_type, *path_type, *array_type;

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

static const char diverged_text[] =
    "The iterates are no longer finite.\n\n"
    ">>> import numpy as np, hfsad\n"
    ">>> try:\n"
    "...     hfsad.run({'loss': 'squared', 'algorithm': 'fedavg', 'baseline.step': 1e9}, (np.eye(2), [1.0, 2.0]))\n"
    "... except hfsad.DivergedError:\n"
    "...     print('a smaller step is needed')\n"
    "a smaller step is needed\n";

static int fill(PyObject *module)
{
    diverged_error = PyErr_NewExceptionWithDoc("hfsad.DivergedError", diverged_text, PyExc_ArithmeticError, NULL);
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
