/* hfsad_result. Nothing changes a result, so its arrays are lent without a copy and any thread may read it. */
#include "binding.h"

#include <string.h>

PyObject *result_wrap(hfsad_result *result)
{
    ResultObject *self = PyObject_New(ResultObject, result_type);
    if (self)
        self->result = result;
    else
        hfsad_result_free(result);
    return (PyObject *)self;
}

static PyObject *result_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *words[] = {"folder", NULL};
    PyObject *path = NULL;
    hfsad_result *result = NULL;
    hfsad_error err;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O&", words, PATH_CONVERTER, &path))
        return NULL;
    const hfsad_status status = hfsad_result_load(&result, PyBytes_AsString(path), &err);
    Py_DECREF(path);
    return status ? raise_status(status, &err) : result_wrap(result);
}

static void result_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    hfsad_result_free(((ResultObject *)self)->result);
    PyObject_Free(self);
    Py_DECREF(type);
}

static hfsad_result *of(PyObject *self)
{
    return ((ResultObject *)self)->result;
}

static PyObject *result_models(PyObject *self, PyObject *nothing)
{
    const hfsad_result *r = of(self);
    const size_t nodes = hfsad_result_nodes(r), width = hfsad_result_width(r);
    (void)nothing;
    PyObject *models = array_of(self, hfsad_result_models(r), nodes * width);
    return models ? Py_BuildValue("NnnnO", models, (Py_ssize_t)nodes, (Py_ssize_t)hfsad_result_inner_nodes(r),
                                  (Py_ssize_t)width, hfsad_result_intercept(r) ? Py_True : Py_False)
                  : NULL;
}

static PyObject *result_names(PyObject *self, PyObject *nothing)
{
    const hfsad_result *r = of(self);
    (void)nothing;
    PyObject *list = PyList_New((Py_ssize_t)hfsad_result_nodes(r));
    for (size_t i = 0; list && i < hfsad_result_nodes(r); i++) {
        PyObject *name = PyUnicode_FromString(hfsad_result_node_name(r, i));
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *result_trace(PyObject *self, PyObject *nothing)
{
    const hfsad_result *r = of(self);
    (void)nothing;
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < hfsad_result_trace_columns(r); i++) {
        const char *name = hfsad_result_trace_name(r, i);
        PyObject *column = array_of(self, hfsad_result_trace(r, name), hfsad_result_trace_rows(r));
        if (!column || PyDict_SetItemString(dict, name, column))
            Py_CLEAR(dict);
        Py_XDECREF(column);
    }
    return dict;
}

static PyObject *result_groups(PyObject *self, PyObject *nothing)
{
    const hfsad_result *r = of(self);
    const size_t inner = hfsad_result_inner_nodes(r), clients = hfsad_result_nodes(r) - inner;
    (void)nothing;
    if (hfsad_result_groups(r) == 0)
        Py_RETURN_NONE;
    PyObject *list = PyList_New((Py_ssize_t)clients);
    for (size_t i = 0; list && i < clients; i++) {
        PyObject *group = PyLong_FromSize_t(hfsad_result_group(r, inner + i));
        if (!group || PyList_SetItem(list, (Py_ssize_t)i, group))
            Py_CLEAR(list);
    }
    return list;
}

PyObject *verdict_tuple(const hfsad_verdict *verdict)
{
    static const char *const kinds[] = {"unknown", "converged", "not converged"};
    return Py_BuildValue("sds", kinds[verdict->kind], verdict->gap, verdict->text);
}

static PyObject *result_verdict(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return verdict_tuple(hfsad_result_verdict(of(self)));
}

static PyObject *result_stop(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return PyUnicode_FromString(hfsad_stop_name(hfsad_result_stop(of(self))));
}

static PyObject *result_errors(PyObject *self, PyObject *nothing)
{
    const double *errors = hfsad_result_errors(of(self));
    (void)nothing;
    return errors ? array_of(self, errors, hfsad_result_width(of(self))) : Py_NewRef(Py_None);
}

static PyObject *result_settings(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return spec_dict(hfsad_result_settings(of(self)));
}

/* ---- use ---- */

static PyObject *result_predict(PyObject *self, PyObject *args)
{
    DataObject *data;
    int with;
    PyObject *out;
    Py_buffer to;
    hfsad_error err;
    if (!PyArg_ParseTuple(args, "O!iO", data_type, &data, &with, &out) || PyObject_GetBuffer(out, &to, PyBUF_WRITABLE))
        return NULL;
    hfsad_status status = HFSAD_OK;
    if (to.len == (Py_ssize_t)(data->rows * sizeof(double))) {
        PyThreadState *saved = PyEval_SaveThread();
        status = hfsad_result_predict(of(self), data->data, (hfsad_with)with, to.buf, &err);
        PyEval_RestoreThread(saved);
    } else {
        PyErr_SetString(PyExc_ValueError, "predict: expected room for one number per row");
    }
    PyBuffer_Release(&to);
    return PyErr_Occurred() ? NULL : none_or_raise(status, &err);
}

static PyObject *evaluation_list(const hfsad_evaluation *evaluation)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < hfsad_evaluation_nodes(evaluation); i++) {
        hfsad_row_figures f = {.size = sizeof f};
        hfsad_evaluation_figures(evaluation, i, &f);
        PyObject *row = Py_BuildValue("snddddd", hfsad_evaluation_node_name(evaluation, i), (Py_ssize_t)f.rows,
                                      f.weight, f.loss, f.total, f.accuracy, f.coverage);
        if (!row || PyList_Append(list, row))
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *result_evaluate(PyObject *self, PyObject *args)
{
    DataObject *data;
    int with;
    hfsad_evaluation *evaluation = NULL;
    hfsad_error err;
    if (!PyArg_ParseTuple(args, "O!i", data_type, &data, &with))
        return NULL;
    PyThreadState *saved = PyEval_SaveThread();
    const hfsad_status status = hfsad_result_evaluate(of(self), data->data, (hfsad_with)with, &evaluation, &err);
    PyEval_RestoreThread(saved);
    if (status)
        return raise_status(status, &err);
    PyObject *list = evaluation_list(evaluation);
    hfsad_evaluation_free(evaluation);
    return list;
}

static PyMethodDef methods[] = {
    {"models", result_models, METH_NOARGS, "(numbers, nodes, inner nodes, width, has an intercept)"},
    {"names", result_names, METH_NOARGS, "The names of all nodes."},
    {"trace", result_trace, METH_NOARGS, "Column -> numbers."},
    {"groups", result_groups, METH_NOARGS, "The group of every client, or None."},
    {"errors", result_errors, METH_NOARGS, "Standard errors of the cloud's model, or None."},
    {"verdict", result_verdict, METH_NOARGS, "(kind, gap, text)"},
    {"stop", result_stop, METH_NOARGS, "Why the run stopped."},
    {"settings", result_settings, METH_NOARGS, "The settings in force."},
    {"predict", result_predict, METH_VARARGS, "predict(data, with, out)"},
    {"evaluate", result_evaluate, METH_VARARGS,
     "evaluate(data, with): (node, rows, weight, loss, total, accuracy, coverage) of every node."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {{Py_tp_new, result_new},
                              {Py_tp_dealloc, result_free},
                              {Py_tp_methods, methods},
                              {Py_tp_doc, "Result(folder): what came of a run, from its output folder."},
                              {0, NULL}};
PyType_Spec result_type_spec = {"hfsad._core.Result", sizeof(ResultObject), 0, Py_TPFLAGS_DEFAULT, slots};
