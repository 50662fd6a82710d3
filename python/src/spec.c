/* hfsad_spec. */
#include "binding.h"

#include <stdlib.h>
#include <string.h>

static PyObject *spec_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *words[] = {"path", NULL};
    PyObject *path = NULL;
    hfsad_error err;
    if (!PyArg_ParseTupleAndKeywords(args, names, "|O&", words, PATH_CONVERTER, &path))
        return NULL;
    SpecObject *self = (SpecObject *)PyType_GenericAlloc(type, 0);
    if (self) {
        const hfsad_status status =
            path ? hfsad_spec_load(&self->spec, PyBytes_AsString(path), &err) : hfsad_spec_create(&self->spec, &err);
        if (status) {
            Py_CLEAR(self);
            raise_status(status, &err);
        }
    }
    Py_XDECREF(path);
    return (PyObject *)self;
}

static void spec_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    hfsad_spec_free(((SpecObject *)self)->spec);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* A number keeps all its bits; other values are YAML. */
static hfsad_status set(hfsad_spec *spec, const char *key, PyObject *value, hfsad_error *err)
{
    if (PyBool_Check(value))
        return hfsad_spec_set_flag(spec, key, value == Py_True, err);
    if (PyFloat_Check(value))
        return hfsad_spec_set_real(spec, key, PyFloat_AsDouble(value), err);
    if (PyLong_Check(value)) {
        const long long whole = PyLong_AsLongLong(value);
        return whole == -1 && PyErr_Occurred() ? HFSAD_ERROR_INPUT : hfsad_spec_set_whole(spec, key, whole, err);
    }
    const char *text = PyUnicode_AsUTF8AndSize(value, NULL);
    return text ? hfsad_spec_set_text(spec, key, text, err) : HFSAD_ERROR_INPUT;
}

static PyObject *spec_set(PyObject *self, PyObject *args)
{
    const char *key;
    PyObject *value;
    hfsad_error err;
    if (!PyArg_ParseTuple(args, "sO", &key, &value))
        return NULL;
    return none_or_raise(set(((SpecObject *)self)->spec, key, value, &err), &err);
}

static PyObject *spec_set_yaml(PyObject *self, PyObject *args)
{
    const char *key, *value;
    hfsad_error err;
    if (!PyArg_ParseTuple(args, "ss", &key, &value))
        return NULL;
    return none_or_raise(hfsad_spec_set(((SpecObject *)self)->spec, key, value, &err), &err);
}

static PyObject *spec_check(PyObject *self, PyObject *nothing)
{
    hfsad_error err;
    (void)nothing;
    return none_or_raise(hfsad_spec_check(((SpecObject *)self)->spec, &err), &err);
}

/* The value of a setting as an object: real and whole as numbers, auto and none as None. */
static PyObject *value_of(const hfsad_spec *spec, const hfsad_setting *s)
{
    hfsad_error err;
    double real;
    int64_t whole;
    bool flag;
    size_t length;
    if (s->type == HFSAD_SETTING_REAL && !hfsad_spec_get_real(spec, s->key, &real, &err))
        return real == real ? PyFloat_FromDouble(real) : Py_NewRef(Py_None);
    if (s->type == HFSAD_SETTING_WHOLE && !hfsad_spec_get_whole(spec, s->key, &whole, &err))
        return whole >= 0 ? PyLong_FromLongLong(whole) : Py_NewRef(Py_None);
    if (s->type == HFSAD_SETTING_FLAG && !hfsad_spec_get_flag(spec, s->key, &flag, &err))
        return PyBool_FromLong(flag);
    const hfsad_status status = hfsad_spec_get(spec, s->key, NULL, 0, &length, &err);
    char *text = status ? NULL : PyMem_Malloc(length + 1);
    if (!text)
        return status ? raise_status(status, &err) : PyErr_NoMemory();
    hfsad_spec_get(spec, s->key, text, length + 1, NULL, &err);
    PyObject *value = strcmp(text, "auto") && strcmp(text, "none") ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
    PyMem_Free(text);
    return value;
}

PyObject *spec_dict(const hfsad_spec *spec)
{
    PyObject *dict = PyDict_New();
    hfsad_setting s = {.size = sizeof s};
    for (size_t i = 0; dict && hfsad_settings_at(i, &s); i++) {
        PyObject *value = value_of(spec, &s);
        if (!value || PyDict_SetItemString(dict, s.key, value))
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *spec_values(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return spec_dict(((SpecObject *)self)->spec);
}

/* For hfsad._net; the spec must outlive the capsule. */
static PyObject *spec_handle(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return PyCapsule_New(((SpecObject *)self)->spec, SPEC_CAPSULE, NULL);
}

static PyMethodDef methods[] = {
    {"handle", spec_handle, METH_NOARGS, "The handle, for hfsad._net."},
    {"set", spec_set, METH_VARARGS, "set(key, value): a bool, int, float or str."},
    {"set_yaml", spec_set_yaml, METH_VARARGS, "set_yaml(key, text): the value as YAML."},
    {"check", spec_check, METH_NOARGS, "ValueError if a setting is missing or does not go with another."},
    {"values", spec_values, METH_NOARGS, "All settings: key -> value; None for auto and none."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {{Py_tp_new, spec_new},
                              {Py_tp_dealloc, spec_free},
                              {Py_tp_methods, methods},
                              {Py_tp_doc, "Spec(path=None): a spec file, or all defaults."},
                              {0, NULL}};
PyType_Spec spec_type_spec = {"hfsad._core.Spec", sizeof(SpecObject), 0, Py_TPFLAGS_DEFAULT, slots};
