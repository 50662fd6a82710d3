/* hfsad_data. Arrays are borrowed by the buffer protocol; the views are released with the data. */
#include "binding.h"

#include <string.h>

static PyObject *data_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *words[] = {"rows", "features", NULL};
    Py_ssize_t rows, features;
    hfsad_error err;
    if (!PyArg_ParseTupleAndKeywords(args, names, "nn", words, &rows, &features))
        return NULL;
    DataObject *self = (DataObject *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->rows = (size_t)rows;
    self->features = (size_t)features;
    const hfsad_status status = hfsad_data_create(&self->data, (size_t)rows, (size_t)features, HFSAD_BORROW, &err);
    if (status) {
        Py_DECREF(self);
        return raise_status(status, &err);
    }
    return (PyObject *)self;
}

static void data_free(PyObject *object)
{
    DataObject *self = (DataObject *)object;
    PyTypeObject *type = Py_TYPE(object);
    hfsad_data_free(self->data);
    for (size_t i = 0; i < self->n_views; i++)
        PyBuffer_Release(&self->views[i]);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* A view of doubles ('d') or of integers of 4 or 8 bytes ('i') with the given number of dimensions, which lives as long
 * as the data. shape: the required extents, SIZE_MAX: any. NULL: an exception. */
static Py_buffer *borrow(DataObject *self, PyObject *array, const char *what, char kind, int dims, const size_t *shape)
{
    if (self->n_views == DATA_VIEWS) {
        PyErr_SetString(PyExc_ValueError, "too many arrays for one data object");
        return NULL;
    }
    Py_buffer *view = &self->views[self->n_views];
    if (PyObject_GetBuffer(array, view, PyBUF_STRIDES | PyBUF_FORMAT))
        return NULL;
    const char *format = view->format ? view->format : "B";
    const bool fits = kind == 'd' ? !strcmp(format, "d")
                                  : (format[0] != 0 && strchr("ilq", format[0]) && !format[1] &&
                                     (view->itemsize == 4 || view->itemsize == 8));
    bool right = fits && view->ndim == dims;
    for (int i = 0; i < dims && right; i++)
        right =
            (shape[i] == SIZE_MAX || view->shape[i] == (Py_ssize_t)shape[i]) && view->strides[i] % view->itemsize == 0;
    if (right) {
        self->n_views++;
        return view;
    }
    PyErr_Format(PyExc_ValueError,
                 "%s: an array of %d dimensions and format '%s'; expected %s in %d, of the data's shape", what,
                 view->ndim, format, kind == 'd' ? "doubles" : "integers of 4 or 8 bytes", dims);
    PyBuffer_Release(view);
    return NULL;
}

static PyObject *data_dense(PyObject *object, PyObject *array)
{
    DataObject *self = (DataObject *)object;
    hfsad_error err;
    const Py_buffer *x = borrow(self, array, "X", 'd', 2, (size_t[]){self->rows, self->features});
    if (!x)
        return NULL;
    const Py_ssize_t size = sizeof(double);
    return none_or_raise(hfsad_data_dense(self->data, x->buf, x->strides[0] / size, x->strides[1] / size, &err), &err);
}

static PyObject *data_csr(PyObject *object, PyObject *args)
{
    DataObject *self = (DataObject *)object;
    PyObject *start, *column, *value;
    hfsad_error err;
    if (!PyArg_ParseTuple(args, "OOO", &start, &column, &value))
        return NULL;
    const Py_buffer *s = borrow(self, start, "start", 'i', 1, (size_t[]){self->rows + 1});
    const Py_buffer *c = s ? borrow(self, column, "column", 'i', 1, (size_t[]){SIZE_MAX}) : NULL;
    const Py_buffer *v = c ? borrow(self, value, "value", 'd', 1, (size_t[]){(size_t)c->shape[0]}) : NULL;
    if (!v)
        return NULL;
    const bool wide = s->itemsize == 8, packed = s->strides[0] == s->itemsize && c->strides[0] == c->itemsize &&
                                                 v->strides[0] == v->itemsize && s->itemsize == c->itemsize;
    const int64_t end = !packed ? 0 : wide ? ((int64_t *)s->buf)[self->rows] : ((int32_t *)s->buf)[self->rows];
    if (!packed || end > v->shape[0]) {
        PyErr_SetString(PyExc_ValueError, "sparse rows: expected start and column of one type, arrays without gaps, "
                                          "and as many values as start says");
        return NULL;
    }
    return none_or_raise(wide ? hfsad_data_csr64(self->data, s->buf, c->buf, v->buf, &err)
                              : hfsad_data_csr(self->data, s->buf, c->buf, v->buf, &err),
                         &err);
}

static PyObject *data_y(PyObject *object, PyObject *array)
{
    DataObject *self = (DataObject *)object;
    hfsad_error err;
    const Py_buffer *y = borrow(self, array, "y", 'd', 1, &self->rows);
    return y ? none_or_raise(hfsad_data_y(self->data, y->buf, y->strides[0] / (Py_ssize_t)sizeof(double), &err), &err)
             : NULL;
}

static PyObject *data_weights(PyObject *object, PyObject *array)
{
    DataObject *self = (DataObject *)object;
    hfsad_error err;
    const Py_buffer *w = borrow(self, array, "weights", 'd', 1, &self->rows);
    return w ? none_or_raise(hfsad_data_weights(self->data, w->buf, w->strides[0] / (Py_ssize_t)sizeof(double), &err),
                             &err)
             : NULL;
}

/* Codes and names are copied by the library. */
static PyObject *data_codes(PyObject *object, PyObject *args)
{
    DataObject *self = (DataObject *)object;
    PyObject *array, *names, *keep = NULL, *answer = NULL;
    size_t n;
    hfsad_error err;
    if (!PyArg_ParseTuple(args, "OO", &array, &names))
        return NULL;
    const Py_buffer *codes = borrow(self, array, "codes", 'i', 1, &self->rows);
    const char **texts = codes ? texts_of(names, SIZE_MAX, &keep, &n) : NULL;
    if (texts && (codes->itemsize != 8 || codes->strides[0] != 8))
        PyErr_SetString(PyExc_ValueError, "codes: integers of 8 bytes without gaps are expected");
    else if (texts)
        answer = none_or_raise(hfsad_data_codes(self->data, codes->buf, texts, n, &err), &err);
    if (codes)
        PyBuffer_Release(&self->views[--self->n_views]);
    PyMem_Free(texts);
    Py_XDECREF(keep);
    return answer;
}

static PyObject *data_feature_names(PyObject *object, PyObject *names)
{
    DataObject *self = (DataObject *)object;
    PyObject *keep = NULL, *answer = NULL;
    size_t n;
    hfsad_error err;
    const char **texts = texts_of(names, self->features, &keep, &n);
    if (texts)
        answer = none_or_raise(hfsad_data_feature_names(self->data, texts, &err), &err);
    PyMem_Free(texts);
    Py_XDECREF(keep);
    return answer;
}

static PyObject *data_truth(PyObject *object, PyObject *array)
{
    DataObject *self = (DataObject *)object;
    hfsad_error err;
    const Py_buffer *truth = borrow(self, array, "truth", 'd', 1, &self->features);
    if (!truth)
        return NULL;
    if (truth->strides[0] != (Py_ssize_t)sizeof(double)) {
        PyErr_SetString(PyExc_ValueError, "truth: an array without gaps is expected");
        return NULL;
    }
    return none_or_raise(hfsad_data_truth(self->data, truth->buf, &err), &err);
}

int data_or_none(PyObject *object, void *to)
{
    if (object != Py_None && !PyObject_TypeCheck(object, data_type)) {
        PyErr_SetString(PyExc_TypeError, "data: expected hfsad._core.Data or None");
        return 0;
    }
    *(DataObject **)to = object == Py_None ? NULL : (DataObject *)object;
    return 1;
}

/* For hfsad._net; the data must outlive the capsule. */
static PyObject *data_handle(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return PyCapsule_New(((DataObject *)self)->data, DATA_CAPSULE, NULL);
}

static PyMethodDef methods[] = {
    {"handle", data_handle, METH_NOARGS, "The handle, for hfsad._net."},
    {"dense", data_dense, METH_O, "dense(X): rows x features doubles, with any strides."},
    {"csr", data_csr, METH_VARARGS, "csr(start, column, value): compressed sparse rows."},
    {"y", data_y, METH_O, "y(array): one double per row."},
    {"weights", data_weights, METH_O, "weights(array): one double above 0 per row."},
    {"codes", data_codes, METH_VARARGS, "codes(array, paths): row r belongs to the client paths[codes[r]]."},
    {"feature_names", data_feature_names, METH_O, "feature_names(names)"},
    {"truth", data_truth, METH_O, "truth(array): the model that the data was drawn from."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {{Py_tp_new, data_new},
                              {Py_tp_dealloc, data_free},
                              {Py_tp_methods, methods},
                              {Py_tp_doc, "Data(rows, features): rows in memory, borrowed."},
                              {0, NULL}};
PyType_Spec data_type_spec = {"hfsad._core.Data", sizeof(DataObject), 0, Py_TPFLAGS_DEFAULT, slots};
